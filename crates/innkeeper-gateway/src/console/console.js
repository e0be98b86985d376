// Reads the marked sections of a page again. Without this script, every page works with links and forms.
"use strict";

const sections = () => [...document.querySelectorAll("[data-refresh]")];

const schedule = () => {
  const seconds = sections().map((section) => Number(section.dataset.refresh));
  if (seconds.length > 0) setTimeout(refresh, Math.min(...seconds) * 1000);
};

const refresh = async () => {
  try {
    if (!document.hidden) await readAgain();
  } catch {
    // The gateway does not respond; the next time it may.
  }
  schedule();
};

const readAgain = async () => {
  const response = await fetch(location.href, { redirect: "manual", cache: "no-store" });
  // The session has ended: the page then asks for a sign-in.
  if (response.type === "opaqueredirect" || response.status === 401) return location.reload();
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  sections().filter((section) => !isInUse(section)).forEach((section) => {
    const fresh = page.getElementById(section.id);
    if (fresh) replace(section, fresh);
  });
};

const replace = (section, fresh) => {
  const focused = section.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...section.querySelectorAll("details")].map((details) => details.open);
  const places = [...section.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
  section.replaceWith(fresh);
  fresh.querySelectorAll("details").forEach((details, at) => { details.open = open[at] ?? false; });
  fresh.querySelectorAll(".scroll").forEach((box, at) => {
    if (places[at]) [box.scrollLeft, box.scrollTop] = places[at];
  });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
};

// A selected text stays, and so does an element with the focus that the new section may not have.
const isInUse = (section) => {
  const selection = getSelection();
  const active = document.activeElement;
  return (section.contains(active) && !active.id)
    || (!selection.isCollapsed && section.contains(selection.anchorNode));
};

schedule();
