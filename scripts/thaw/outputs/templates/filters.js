// Filters: what carries data-task, data-encoder, data-head or data-strategy is shown if its values are chosen. A column
// follows its head. Without a script everything is shown.
{
  const axes = { task: "Task", encoder: "Encoder", head: "Head", strategy: "Strategy" };
  const hidden = {}; // axis -> values that are not shown
  const names = JSON.parse(document.getElementById("names")?.textContent ?? "{}");
  const place = document.getElementById("filters");
  const apply = () => {
    for (const part of document.querySelectorAll("[data-task], [data-encoder], [data-head], [data-strategy], [data-baseline]")) {
      const gone = Object.keys(axes).some((axis) => hidden[axis]?.has(part.dataset[axis])) || (hidden.baseline && part.dataset.baseline);
      if (part.tagName !== "TH") part.hidden = gone;
      else if (gone !== part.hidden) for (const row of part.closest("table").rows) if (row.cells.length > part.cellIndex) row.cells[part.cellIndex].hidden = gone;
    }
  };
  const box = (text, changed) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
    input.addEventListener("change", () => { changed(input.checked); apply(); });
    label.append(input, text);
    return label;
  };
  for (const [axis, name] of Object.entries(axes)) {
    const values = [...new Set([...document.querySelectorAll(`[data-${axis}]`)].map((part) => part.dataset[axis]))].filter(Boolean);
    if (!place || values.length < 2) continue;
    hidden[axis] = new Set();
    const fold = document.createElement("details");
    const title = document.createElement("summary");
    title.textContent = name;
    const list = document.createElement("div");
    const boxes = values.map((value) => box(names[axis]?.[value] ?? value, (on) => (on ? hidden[axis].delete(value) : hidden[axis].add(value))));
    const all = document.createElement("button");
    all.type = "button";
    all.textContent = "all or none";
    all.addEventListener("click", () => {
      const inputs = boxes.map((label) => label.firstChild);
      const on = !inputs.every((input) => input.checked);
      inputs.forEach((input, i) => { input.checked = on; on ? hidden[axis].delete(values[i]) : hidden[axis].add(values[i]); });
      apply();
    });
    list.append(all, ...boxes);
    fold.append(title, list);
    place.append(fold);
  }
  if (place && document.querySelector("[data-baseline], tbody.baselines")) {
    place.append(box("baselines", (on) => {
      hidden.baseline = !on;
      document.querySelectorAll("tbody.baselines").forEach((part) => (part.hidden = !on));
    }));
  }
}
