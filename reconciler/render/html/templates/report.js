"use strict";
(() => {
  const ROW = 32;
  const SPARE = 12;
  const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

  const group = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, " ");
  const count = (number, noun) => `${group(number)} ${noun}${number === 1 ? "" : "s"}`;

  const formatSize = (size) => {
    if (size < 0) return "";
    let unit = 0;
    let amount = size;
    while (unit + 1 < UNITS.length && amount >= (unit ? 1023.95 : 1024)) {
      amount /= 1024;
      unit += 1;
    }
    return unit ? `${amount.toFixed(1)} ${UNITS[unit]}` : `${size} ${size === 1 ? "byte" : "bytes"}`;
  };

  const cell = (text, name) => {
    const made = document.createElement("td");
    made.textContent = text;
    if (name) made.className = name;
    return made;
  };

  // --- light and dark ---
  const startTheme = () => {
    const button = document.getElementById("theme");
    const names = ["system", "light", "dark"];
    let chosen = "system";
    const show = () => {
      if (chosen === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = chosen;
      button.textContent = `Theme: ${chosen}`;
    };
    try {
      chosen = localStorage.getItem("reconciler-theme") || "system";
    } catch {
      // a browser may keep nothing for files
    }
    if (!names.includes(chosen)) chosen = "system";
    button.hidden = false;
    button.addEventListener("click", () => {
      chosen = names[(names.indexOf(chosen) + 1) % names.length];
      try {
        localStorage.setItem("reconciler-theme", chosen);
      } catch {
        // then it holds for this page
      }
      show();
    });
    show();
  };

  // --- the table of tables ---
  const startFleet = () => {
    const table = document.getElementById("fleet");
    if (!table) return;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const order = (row, place) => {
      const at = row.cells[place];
      const text = place ? at.dataset.order : at.textContent;
      const number = Number(text);
      return text === "" || Number.isNaN(number) ? text : number;
    };
    const compare = (a, b) => {
      if (typeof a === "number" && typeof b === "number") return a - b;
      return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
    };
    const find = document.getElementById("fleet-find");
    const show = document.getElementById("fleet-show");
    const sorter = document.getElementById("fleet-sort");
    const shown = document.getElementById("fleet-count");
    const announced = document.getElementById("fleet-order");
    const first = (head) => (head.classList.contains("n") ? "descending" : "ascending");
    const sortBy = (place, direction) => {
      const head = heads[place];
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      const keyed = rows.map((row, nth) => [order(row, place), nth, row]);
      keyed.sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1]);
      body.append(...keyed.map((one) => one[2]));
      sorter.value = String(place);
      announced.textContent = `Sorted by ${head.textContent.trim()}, ${direction}`;
    };
    heads.forEach((head, place) => {
      const option = document.createElement("option");
      option.value = String(place);
      option.textContent = head.textContent.trim();
      sorter.append(option);
      if (head.hasAttribute("aria-sort")) sorter.value = option.value;
      head.querySelector("button").addEventListener("click", () => {
        const opposite = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        sortBy(place, head.hasAttribute("aria-sort") ? opposite : first(head));
      });
    });
    sorter.addEventListener("change", () => sortBy(Number(sorter.value), first(heads[sorter.value])));

    // states and health that some table has, the worst first
    for (const place of [2, 1]) {
      const options = document.createElement("optgroup");
      options.label = heads[place].textContent.trim();
      const counts = new Map();
      [...rows].sort((a, b) => compare(order(a, place), order(b, place))).forEach((row) => {
        const text = row.cells[place].textContent;
        counts.set(text, (counts.get(text) || 0) + 1);
      });
      counts.forEach((number, text) => {
        const option = document.createElement("option");
        option.value = `${place} ${text}`;
        option.textContent = `${text} (${number})`;
        options.append(option);
      });
      show.append(options);
    }
    const filter = () => {
      const wanted = find.value.trim().toLowerCase();
      const place = Number(show.value.split(" ")[0]);
      const state = show.value.slice(2);
      let left = 0;
      for (const row of rows) {
        const isNamed = row.cells[0].textContent.toLowerCase().includes(wanted);
        row.hidden = !isNamed || (place > 0 && row.cells[place].textContent !== state);
        if (!row.hidden) left += 1;
      }
      shown.textContent = left === rows.length
        ? count(left, "table") : `${group(left)} of ${count(rows.length, "table")}`;
    };
    for (const one of [find, show, sorter]) one.disabled = false;
    find.addEventListener("input", filter);
    show.addEventListener("change", filter);
    filter();
  };

  // --- the files of a table: rows are made for what is seen ---
  const startFiles = (section) => {
    const data = JSON.parse(section.querySelector(".file-data").textContent);
    const total = data.name.length;
    const region = section.querySelector(".scroll");
    const table = region.querySelector("table");
    const body = table.tBodies[0];
    const find = section.querySelector("input");
    const fate = section.querySelector("select");
    const shown = section.querySelector("output");
    const details = section.querySelector(".chosen");
    const heads = [...table.tHead.rows[0].cells];
    let all = Uint32Array.from({ length: total }, (_, row) => row);
    let rows = all;
    let chosen = -1;
    let texts = null;
    const hint = details.firstElementChild;

    if (data.partitions.every((path) => path === "")) section.classList.add("flat");
    const partition = (row) => data.partitions[data.partition[row]];
    const haystack = () => {
      texts ??= data.name.map((name, row) => `${partition(row)}/${name}`.toLowerCase());
      return texts;
    };

    const makeRow = (place) => {
      const row = rows[place];
      const made = document.createElement("tr");
      made.setAttribute("aria-rowindex", String(place + 2));
      made.dataset.place = String(place);
      if (place === chosen) made.className = "on";
      made.append(
        cell(data.name[row]),
        cell(partition(row) || "(root)", "wide partition"),
        cell(data.kinds[data.kind[row]], "wide"),
        cell(formatSize(data.size[row]), "n"),
        cell(data.fates[data.fate[row]], `f${data.fate[row]}`),
      );
      made.cells[0].title = data.name[row];
      return made;
    };

    const gap = (height) => {
      const made = document.createElement("tr");
      made.className = "gap";
      made.setAttribute("aria-hidden", "true");
      const inside = cell("");
      inside.colSpan = heads.filter((head) => head.offsetParent).length || 1;
      inside.style.height = `${height}px`;
      made.append(inside);
      return made;
    };

    const draw = () => {
      const seen = Math.ceil(Math.max(region.clientHeight, 432) / ROW) + 2 * SPARE;
      const first = Math.max(0, Math.floor(region.scrollTop / ROW) - SPARE);
      const last = Math.min(rows.length, first + seen);
      const made = [];
      if (first) made.push(gap(first * ROW));
      for (let place = first; place < last; place += 1) made.push(makeRow(place));
      if (last < rows.length) made.push(gap((rows.length - last) * ROW));
      body.replaceChildren(...made);
    };

    const filter = () => {
      const wanted = find.value.trim().toLowerCase();
      const code = fate.value === "" ? -1 : Number(fate.value);
      if (!wanted && code < 0) rows = all;
      else {
        const where = wanted ? haystack() : null;
        rows = all.filter(
          (row) => (code < 0 || data.fate[row] === code) && (!where || where[row].includes(wanted)),
        );
      }
      chosen = -1;
      details.replaceChildren(hint);
      region.scrollTop = 0;
      table.setAttribute("aria-rowcount", String(rows.length + 1));
      shown.textContent = rows.length === total
        ? count(total, "file") : `${group(rows.length)} of ${count(total, "file")}`;
      draw();
    };

    const choose = (place) => {
      if (!rows.length) return;
      chosen = Math.min(Math.max(place, 0), rows.length - 1);
      const top = chosen * ROW;
      const room = region.clientHeight - 2 * ROW;
      if (top < region.scrollTop) region.scrollTop = top;
      else if (top > region.scrollTop + room) region.scrollTop = top - room;
      const row = rows[chosen];
      const name = document.createElement("code");
      name.textContent = partition(row) ? `${partition(row)}/${data.name[row]}` : data.name[row];
      const first = document.createElement("p");
      first.append(name);
      const second = document.createElement("p");
      const parts = [data.kinds[data.kind[row]], formatSize(data.size[row]), data.fates[data.fate[row]]];
      const why = data.reasons[data.reason[row]];
      second.textContent = parts.filter(Boolean).join(", ") + (why ? `: ${why}` : "");
      details.replaceChildren(first, second);
      draw();
    };

    const sortBy = (head) => {
      const key = head.querySelector("button").dataset.key;
      const next = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const values = data[key];
      const less = key === "name"
        ? (a, b) => (values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : 0)
        : (a, b) => values[a] - values[b];
      all = Uint32Array.from(all).sort((a, b) => sign * less(a, b) || a - b);
      filter();
    };

    const used = new Set(data.fate);
    data.fates.forEach((name, code) => {
      if (!used.has(code)) return;
      const option = document.createElement("option");
      option.value = String(code);
      option.textContent = name;
      fate.append(option);
    });
    find.disabled = false;
    fate.disabled = false;
    find.addEventListener("input", filter);
    fate.addEventListener("change", filter);
    heads.forEach((head) => head.querySelector("button").addEventListener("click", () => sortBy(head)));
    region.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
    region.addEventListener("keydown", (event) => {
      if (event.target !== region) return;
      const page = Math.floor(region.clientHeight / ROW) - 1;
      const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
      if (event.key in moves) choose(chosen + moves[event.key]);
      else if (event.key === "Home") choose(0);
      else if (event.key === "End") choose(rows.length - 1);
      else return;
      event.preventDefault();
    });
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-place]");
      if (row) choose(Number(row.dataset.place));
    });
    filter();
  };

  // --- folded tables ---
  const openTarget = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };

  // --- tables that are wider than the page: only those take the focus ---
  const startRegions = () => {
    const watcher = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const isCut = target.scrollWidth > target.clientWidth + 1
          || target.scrollHeight > target.clientHeight + 1;
        if (isCut) target.tabIndex = 0;
        else target.removeAttribute("tabindex");
      }
    });
    for (const region of document.querySelectorAll(".scroll-x")) watcher.observe(region);
  };

  startTheme();
  startRegions();
  startFleet();
  for (const section of document.querySelectorAll(".files")) {
    const fold = section.closest("details");
    if (!fold || fold.open) startFiles(section);
    else fold.addEventListener("toggle", () => startFiles(section), { once: true });
  }
  window.addEventListener("hashchange", openTarget);
  if (location.hash) openTarget();
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll(".fold")) one.open = true;
  });
})();
