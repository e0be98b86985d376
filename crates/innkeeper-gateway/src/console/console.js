// Reads the marked sections of a page again. Without this script, every page works with links and forms.
"use strict";

const later = (section) => {
  setTimeout(() => refresh(section.id), Number(section.dataset.refresh) * 1000);
};

const refresh = async (id) => {
  const section = document.getElementById(id);
  if (!section || !section.dataset.refresh) return;
  // A hidden page, a chosen text and the focus of the keyboard stay as they are.
  const isInUse = document.hidden || section.contains(document.activeElement) || hasSelection(section);
  if (isInUse) return later(section);
  try {
    const response = await fetch(location.href, { redirect: "error", cache: "no-store" });
    if (!response.ok) return later(section);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(id);
    if (!fresh || section.contains(document.activeElement)) return later(section);
    const open = [...section.querySelectorAll("details")].map((details) => details.open);
    const places = [...section.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    section.replaceWith(fresh);
    fresh.querySelectorAll("details").forEach((details, at) => { details.open = open[at] ?? false; });
    fresh.querySelectorAll(".scroll").forEach((box, at) => {
      if (places[at]) [box.scrollLeft, box.scrollTop] = places[at];
    });
    if (fresh.dataset.refresh) later(fresh);
  } catch {
    later(section);
  }
};

const hasSelection = (section) => {
  const selection = getSelection();
  return !selection.isCollapsed && section.contains(selection.anchorNode);
};

document.querySelectorAll("[data-refresh]").forEach(later);
