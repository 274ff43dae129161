// The playground: one conversation, streamed over the same API that programs use.
import { readEvents } from "/static/sse.js";

const element = (id) => document.getElementById(id);
const chat = element("chat"), input = element("input"), send = element("send"), key = element("key");
let messages = [];
let running = null; // AbortController of the answer in progress

key.value = sessionStorage.getItem("key") ?? "";
key.addEventListener("change", () => { sessionStorage.setItem("key", key.value); showModel(); });

const headers = () => ({
  "content-type": "application/json",
  ...(key.value && { authorization: `Bearer ${key.value}` }),
});

async function showModel() {
  const badge = element("model");
  try {
    const response = await fetch("/v1/models", { headers: headers() });
    if (response.ok) {
      const [model] = (await response.json()).data;
      badge.textContent = model.id;
      badge.title = `context of ${model.max_model_len.toLocaleString("en")} tokens`;
    } else if (response.status === 401) {
      badge.textContent = "API key needed";
      openSettings(true);
    } else {
      badge.textContent = "loading";
      setTimeout(showModel, 1000);
    }
  } catch {
    badge.textContent = "server not reachable";
    setTimeout(showModel, 3000);
  }
}

function openSettings(isOpen) {
  element("settings").hidden = !isOpen;
  element("toggle").setAttribute("aria-expanded", isOpen);
}

function add(kind, text) {
  element("hint")?.remove();
  const box = document.createElement("div");
  box.className = `message ${kind}`;
  box.append(document.createTextNode(text));
  chat.append(box);
  chat.scrollTop = chat.scrollHeight;
  return box;
}

function addThinking(box) {
  const part = document.createElement("div");
  part.className = "thinking";
  box.prepend(part);
  return part;
}

function figures(timings, seconds) {
  const line = document.createElement("span");
  line.className = "figures";
  line.textContent = `${timings.predicted_n} tokens, ${timings.predicted_per_second.toFixed(1)} tokens/s, ` +
    `first after ${(timings.queue_ms + timings.prompt_ms).toFixed(0)} ms, ` +
    `prompt ${timings.cache_n + timings.prompt_n} (${timings.cache_n} cached), ${seconds.toFixed(1)} s in all`;
  return line;
}

function requestBody() {
  const system = element("system").value.trim(), seed = element("seed").value;
  return {
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages],
    temperature: Number(element("temperature").value),
    top_p: Number(element("top_p").value),
    ...(element("max_tokens").value && { max_tokens: Number(element("max_tokens").value) }),
    ...(seed && { seed: Number(seed) }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

async function answer() {
  running = new AbortController();
  send.textContent = "Stop";
  const conversation = messages; // what is stopped by "New chat" must not end up in the new one
  const box = add("assistant busy", ""), text = box.firstChild, begin = performance.now();
  let timings = null, thinking = null;
  try {
    const response = await fetch("/v1/chat/completions", {
      method: "POST", headers: headers(), body: JSON.stringify(requestBody()), signal: running.signal,
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const event of readEvents(response.body)) {
      if (event.error) throw new Error(event.error.message);
      const isAtEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 40;
      const delta = event.choices[0]?.delta ?? {};
      if (delta.reasoning_content) {
        thinking ??= addThinking(box);
        thinking.textContent += delta.reasoning_content;
      }
      text.data += delta.content ?? "";
      timings = event.timings ?? timings;
      if (isAtEnd) chat.scrollTop = chat.scrollHeight;
    }
  } catch (error) {
    if (error.name !== "AbortError") add("error", error.message);
  } finally {
    box.classList.remove("busy");
    if (text.data) conversation.push({ role: "assistant", content: text.data });
    else box.remove();
    if (timings) box.append(figures(timings, (performance.now() - begin) / 1000));
    running = null;
    send.textContent = "Send";
    input.focus();
  }
}

element("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) { running.abort(); return; }
  const content = input.value.trim();
  if (!content) return;
  input.value = "";
  input.dispatchEvent(new Event("input"));
  if (messages.at(-1)?.role === "user") messages.pop();
  messages.push({ role: "user", content });
  add("user", content);
  answer();
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    element("ask").requestSubmit();
  }
});
input.addEventListener("input", () => {
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + 2}px`;
});
element("toggle").addEventListener("click", () => openSettings(element("settings").hidden));
element("settings").addEventListener("submit", (event) => event.preventDefault());
element("clear").addEventListener("click", () => {
  running?.abort();
  messages = [];
  chat.replaceChildren();
  input.focus();
});
for (const output of document.querySelectorAll("#settings output")) {
  const slider = element(output.htmlFor.value);
  const show = () => { output.value = Number(slider.value).toFixed(2); };
  slider.addEventListener("input", show);
  show();
}
showModel();
