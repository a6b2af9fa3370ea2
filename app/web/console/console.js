// Pages are complete without this: it only puts those parts of a page that have changed in their place.

const address = document.body.dataset.live;
let source = null;
let over = false;
const RECONNECT_MILLISECONDS = 5000;

const replace = ({ id, html }) => {
  const part = document.getElementById(id);
  if (!part) return;
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const said = part.dataset.said;
  const checked = [...part.querySelectorAll("input:checked")].map((input) => input.id);
  part.outerHTML = html;
  for (const input of checked.map((each) => document.getElementById(each))) if (input) input.checked = true;
  inReadersZone(document.getElementById(id));
  const heard = document.getElementById(id).dataset.said;
  if (heard !== said) document.getElementById("heard").textContent = heard;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
};

const close = () => {
  source?.close();
  source = null;
};

const open = () => {
  // A browser has six connections to a host, for all its tabs: one that nobody sees gives its own back.
  if (source || over || document.hidden) return;
  source = new EventSource(address);
  source.addEventListener("part", (event) => replace(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    // A browser connects again by itself, but not after a proxy's 502 while the service is started again.
    if (source?.readyState !== EventSource.CLOSED) return;
    close();
    setTimeout(open, RECONNECT_MILLISECONDS);
  });
  source.addEventListener("end", () => {
    over = true;
    close();
  });
};

if (address) {
  open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
}

// A file that is too large for a page is not sent; any other stands in place of the one that the page brought back.
const file = document.querySelector("input[type=file][data-most]");

const heed = () => {
  const large = (file.files[0]?.size ?? 0) > Number(file.dataset.most);
  document.getElementById("too-large").hidden = !large;
  for (const each of file.form.querySelectorAll("button")) each.disabled = large;
  for (const each of file.form.querySelectorAll("[name^=kept]")) each.disabled = file.files.length > 0;
};

if (file) {
  file.addEventListener("change", heed);
  addEventListener("pageshow", heed);
}

// Where responses are read, j and k go to the next one and the one before, n and p to the next page and the one before.
const cards = [...document.querySelectorAll("main .card")];

const step = (by) => {
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  const card = cards[at < 0 ? (by > 0 ? 0 : cards.length - 1) : at + by];
  const summary = card?.querySelector("summary");
  summary?.focus();
  summary?.scrollIntoView({ block: "start" });
};

const turn = (rel) => document.querySelector(`.pages a[rel=${rel}]`)?.click();
const keys = { j: () => step(1), k: () => step(-1), n: () => turn("next"), p: () => turn("prev") };

const hint = document.querySelector(".keys");

if (hint) {
  hint.hidden = false;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    keys[event.key]?.();
  });
}
