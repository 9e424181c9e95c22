// A browser starts no worker for a page that is read from a disk. A hidden frame does the same work there: the search.
(function () {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = (this.frame = document.createElement("iframe"));
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = (this.inner = frame.contentWindow);
      window.addEventListener("message", (event) => {
        if (event.source !== inner) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
      inner.document.open();
      inner.document.write(
        "<!doctype html><body><script>" +
          "function postMessage(data) { parent.postMessage(data, '*'); }" +
          "function importScripts(...urls) { return urls.reduce((before, url) => before.then(() =>" +
          " new Promise((done, failed) => { const script = document.createElement('script');" +
          " script.src = url; script.onload = done; script.onerror = failed;" +
          " document.body.appendChild(script); })), Promise.resolve()); }" +
          "<\/script><script src='" + new URL(url, location.href).href + "'><\/script></body>"
      );
      inner.document.close();
      this.ready = new Promise((done) => (inner.onload = done));
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
