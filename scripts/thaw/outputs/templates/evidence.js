// Figures that are drawn on demand, and the window of a number: its runs and the command that makes them. Without a
// script numbers are links to the runs.
{
  for (const button of document.querySelectorAll("button.draw")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const stage = button.parentElement;
      const packed = Uint8Array.from(atob(stage.querySelector("script").textContent.trim()), (letter) => letter.charCodeAt(0));
      const plain = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
      const image = document.createElement("img");
      image.alt = stage.closest("figure").querySelector("figcaption").textContent;
      image.src = URL.createObjectURL(new Blob([plain], { type: "image/svg+xml" }));
      await image.decode().catch(() => {});
      stage.prepend(image, stage.querySelector("template").content);
      button.remove();
    });
  }
  const data = document.getElementById("commands");
  if (data) {
    const { command, files } = JSON.parse(data.textContent);
    let open = null;
    const close = () => { open?.remove(); open = null; };
    document.addEventListener("keydown", (event) => event.key === "Escape" && close());
    document.addEventListener("click", (event) => {
      const link = event.target.closest('td a[href^="runs.html#"]');
      if (event.target.closest(".pop")) return;
      close();
      const anchor = link && decodeURIComponent(link.hash.slice(1));
      if (!link || !files[anchor] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      open = document.createElement("div");
      open.className = "pop";
      const runs = Object.assign(document.createElement("a"), { href: link.href, textContent: "Runs, logs and predictions" });
      const code = document.createElement("code");
      code.textContent = `${command} ${files[anchor]}`;
      open.append(runs, code, copying("copy command", () => code.textContent));
      document.body.append(open);
      const box = link.getBoundingClientRect();
      open.style.top = `${box.bottom + scrollY + 6}px`;
      open.style.left = `${Math.max(8, Math.min(box.left + scrollX, document.documentElement.clientWidth - open.offsetWidth - 8))}px`;
    });
  }
}
