{
  const form = document.getElementById("filters");
  const cards = [...document.querySelectorAll(".card")];
  const fields = ["model", "persona", "task"];

  const apply = () => {
    let shown = 0;
    for (const card of cards) {
      const wanted =
        fields.every((field) => !form.elements[field].value || form.elements[field].value === card.dataset[field]) &&
        (!form.elements.outside?.checked || "outside" in card.dataset);
      card.hidden = !wanted;
      shown += wanted;
    }
    form.querySelector("output").textContent = `${shown} shown`;
  };

  const unfold = () => {
    const card = document.getElementById(location.hash.slice(1));
    if (!card?.matches(".card")) return;
    document.getElementById("all-responses").open = card.open = true;
    card.scrollIntoView();
  };

  addEventListener("hashchange", unfold);
  unfold();
  if (form) {
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    apply();
  }
}
