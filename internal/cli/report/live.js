"use strict";
// Replaces the main part of the page whenever the server has news, for which it waits.
const link = document.getElementById("link"), main = document.querySelector("main");
async function follow(version) {
  try {
    const news = await (await fetch("news?seen=" + version)).json();
    const left = [...main.querySelectorAll(".scroll")].map(box => box.scrollLeft);
    if (news.main) { main.innerHTML = news.main; }
    main.querySelectorAll(".scroll").forEach((box, k) => { box.scrollLeft = left[k] || 0; });
    link.textContent = news.over ? "The run has ended. Its report has all figures." : "Live.";
    if (!news.over) { follow(news.version); }
  } catch {
    link.textContent = "The connection is lost; trying again.";
    setTimeout(follow, 2000, version);
  }
}
follow(0);
