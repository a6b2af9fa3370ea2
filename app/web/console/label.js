"use strict";
// The page is complete without this: it presses the button, or follows the link, whose key is pressed. It is loaded before the
// page is shown, so that no key is lost.

let gone = false;

addEventListener("keydown", (event) => {
  if (gone || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  gone = true;
  target.click();
});
addEventListener("submit", () => (gone = true));
addEventListener("pageshow", () => (gone = false));
