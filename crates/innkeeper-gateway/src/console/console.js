// Reads the marked sections of a page again. Without this script, every page works with links and forms.
"use strict";

const later = (section) => {
  setTimeout(() => refresh(section.id), Number(section.dataset.refresh) * 1000);
};

const refresh = async (id) => {
  const section = document.getElementById(id);
  if (!section || !section.dataset.refresh) return;
  if (document.hidden || isInUse(section)) return later(section);
  try {
    const response = await fetch(location.href, { redirect: "error", cache: "no-store" });
    if (!response.ok) return later(section);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(id);
    if (!fresh || isInUse(section)) return later(section);
    const focused = section.contains(document.activeElement) ? document.activeElement.id : "";
    const open = [...section.querySelectorAll("details")].map((details) => details.open);
    const places = [...section.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    section.replaceWith(fresh);
    fresh.querySelectorAll("details").forEach((details, at) => { details.open = open[at] ?? false; });
    fresh.querySelectorAll(".scroll").forEach((box, at) => {
      if (places[at]) [box.scrollLeft, box.scrollTop] = places[at];
    });
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (fresh.dataset.refresh) later(fresh);
  } catch {
    later(section);
  }
};

// A selected text stays, and so does an element with the focus that the new section may not have.
const isInUse = (section) => {
  const selection = getSelection();
  const active = document.activeElement;
  return (section.contains(active) && !active.id)
    || (!selection.isCollapsed && section.contains(selection.anchorNode));
};

document.querySelectorAll("[data-refresh]").forEach(later);
