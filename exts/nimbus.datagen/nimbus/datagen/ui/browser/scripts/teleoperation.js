// Keys, gamepad and six-axis mouse of the operator, reported to the studio while teleoperation is on.
"use strict";
(() => {
  const base = document.currentScript.src.replace(/\.js$/, "");
  const PERIOD = 33; // [ms] between two reports
  const KEYS = {
    KeyW: [0, 1], KeyS: [0, -1], KeyA: [1, 1], KeyD: [1, -1], KeyE: [2, 1], KeyQ: [2, -1],
    KeyU: [3, 1], KeyO: [3, -1], KeyI: [4, 1], KeyK: [4, -1], KeyJ: [5, 1], KeyL: [5, -1],
  };
  const held = new Set();
  let presses = [0, 0, 0, 0, 0, 0], pressCount = 0; // of each axis since the last report, so that short ones count
  let isOn = false, arm = 0, closed = null, device = "keyboard", lost = "", pads = 0;
  let number = 0, latency = 0, last = "", waits = new Map(), busy = false, wasPressed = [], mouse = null;
  let mouseAxes = [0, 0, 0, 0, 0, 0];

  const isTyping = () => {
    const one = document.activeElement;
    return one && (one.isContentEditable || /^(TEXTAREA|SELECT)$/.test(one.tagName) ||
      (one.tagName === "INPUT" && !/^(checkbox|button|range)$/.test(one.type)));
  };
  const onKey = event => {
    if (!isOn || isTyping() || event.ctrlKey || event.metaKey || event.altKey) return;
    const isDown = event.type === "keydown";
    if (event.code in KEYS) {
      if (isDown && !held.has(event.code)) { presses[KEYS[event.code][0]] += KEYS[event.code][1]; pressCount += 1; }
      isDown ? held.add(event.code) : held.delete(event.code);
    } else if (event.code === "Space") { if (isDown && !event.repeat) grip(); }
    else if (/^Digit[1-9]$/.test(event.code)) { if (isDown) arm = Number(event.code.slice(5)) - 1; }
    else if (event.code === "KeyM") { if (isDown && !event.repeat) connectMouse(); }
    else return;
    device = "keyboard";
    event.stopImmediatePropagation(); // the page moves its own view by the same keys
    event.preventDefault();
  };
  // Undo and a new layout open a hand, and each arm has its own, so the robot's state counts once it has the last press.
  const grip = () => {
    closed = applied < awaited ? !closed : !gripped[arm];
    changed = true;
    pressCount += 1;
    awaited = number + 1; // the number of the next report
  };
  let changed = false, awaited = 0, applied = 0, gripped = [];
  for (const kind of ["keydown", "keyup"]) window.addEventListener(kind, onKey, true);
  window.addEventListener("blur", () => held.clear());
  window.addEventListener("gamepaddisconnected", event => { lost = `gamepad ${event.gamepad.id}`.slice(0, 80); });
  window.addEventListener("gamepadconnected", () => { lost = ""; });

  const connectMouse = async () => {
    if (!navigator.hid) return;
    const filters = [{ vendorId: 0x256f }, { vendorId: 0x046d, usagePage: 1, usage: 8 }];
    const [found] = await navigator.hid.requestDevice({ filters });
    if (!found) return;
    await found.open();
    mouse = found;
    lost = "";
    found.addEventListener("inputreport", ({ reportId, data }) => {
      const read = (from, count) => Array.from({ length: count }, (_, i) => data.getInt16(from + 2 * i, true) / 350);
      const limit = value => Math.max(-1, Math.min(1, value));
      const place = values => { [mouseAxes[1], mouseAxes[0], mouseAxes[2]] = [-values[0], -values[1], -values[2]].map(limit); };
      const turn = values => { [mouseAxes[4], mouseAxes[3], mouseAxes[5]] = [-values[0], -values[1], -values[2]].map(limit); };
      if (reportId === 1) { place(read(0, 3)); if (data.byteLength >= 12) turn(read(6, 3)); }
      else if (reportId === 2) turn(read(0, 3));
      else if (reportId === 3 && data.getUint8(0) & 1) grip();
    });
  };
  if (navigator.hid) navigator.hid.addEventListener("disconnect", event => {
    if (event.device === mouse) { mouse = null; mouseAxes.fill(0); lost = "six-axis mouse"; }
  });

  const padAxes = () => {
    const pad = [...(navigator.getGamepads ? navigator.getGamepads() : [])].find(one => one && one.connected);
    if (!pad) return null;
    const pressed = pad.buttons.map(one => one.pressed);
    const edge = index => pressed[index] && !wasPressed[index];
    if (edge(0)) grip();
    if (edge(3)) arm = arm ? 0 : 1;
    wasPressed = pressed;
    const value = index => pad.axes[index] || 0, push = index => pad.buttons[index] ? pad.buttons[index].value : 0;
    return [-value(1), -value(0), push(7) - push(6), push(15) ? 1 : push(14) ? -1 : 0, -value(3), -value(2)];
  };

  const read = () => {
    const axes = [0, 0, 0, 0, 0, 0];
    for (const key of held) axes[KEYS[key][0]] += KEYS[key][1];
    for (const [name, found] of [["gamepad", padAxes()], ["six-axis mouse", mouse && mouseAxes]]) {
      if (!found) continue;
      if (found.some(value => Math.abs(value) > 0.08)) device = name;
      found.forEach((value, index) => { axes[index] += value; });
    }
    return axes.map(value => Math.max(-1, Math.min(1, Math.round(value * 1000) / 1000)));
  };

  const report = async () => {
    const axes = read(), now = JSON.stringify([axes, pressCount, arm]);
    if (isOn && now !== last) { number += 1; waits.set(number, performance.now()); }
    last = now;
    if (busy) return;
    busy = true;
    const own = { number, axes, presses, arm, device, lost, latency: latency / 1000 };
    presses = [0, 0, 0, 0, 0, 0];
    if (changed) { own.closed = closed; changed = false; }
    try {
      const answer = await fetch(`${base}?${encodeURIComponent(JSON.stringify(own))}`, { cache: "no-store" });
      if (answer.ok) ({ is_on: isOn = false, number: applied = 0, closed: gripped = [] } = await answer.json());
    } catch { isOn = false; }
    busy = false;
  };

  // The number comes with the poses of the bodies that the input has moved; a frame later both are on the screen.
  const look = () => {
    const shown = Number(document.getElementById("nimbus-applied")?.textContent || 0);
    for (const [one, begun] of waits) {
      if (one > shown) break;
      requestAnimationFrame(() => { latency = performance.now() - begun; });
      waits.delete(one);
    }
    if (waits.size > 100) waits.clear();
    requestAnimationFrame(look);
  };
  let beats = 0;
  setInterval(() => { if (isOn || ++beats % 15 === 0) report(); }, PERIOD);
  requestAnimationFrame(look);
  window.nimbusTeleoperation = { state: () => ({ isOn, number, latency, device, arm, lost }) };
})();
