"use strict";
// Replaces each part of the page that the server sends anew.
const link = document.getElementById("link");
const source = new EventSource("events");
source.addEventListener("open", () => { link.textContent = "Live."; });
source.addEventListener("part", event => {
  const part = JSON.parse(event.data), place = document.getElementById(part.id);
  const left = [...place.querySelectorAll(".scroll")].map(box => box.scrollLeft);
  place.innerHTML = part.html;
  place.querySelectorAll(".scroll").forEach((box, k) => { box.scrollLeft = left[k] || 0; });
});
source.addEventListener("end", () => { source.close(); link.textContent = "The run has ended. Its report has all figures."; });
source.addEventListener("error", () => { link.textContent = "The connection is lost; trying again."; });
