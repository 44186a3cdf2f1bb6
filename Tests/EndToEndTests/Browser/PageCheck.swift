import Foundation
import Testing

/// What a page owes to those who do not see it, or not well: looked at in the browser's own tree and by its own styles.
struct PageCheck {
    private(set) var faults: [String] = []

    /// Roles that a person can do something with, or has to know the name of.
    private static let named: Set<String> = [
        "button", "link", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "progressbar", "img",
        "image",
        "DisclosureTriangle", "spinbutton", "meter",
    ]

    init(_ browser: Browser) async throws {
        let tree = try await browser.protocolCommand("Accessibility.getFullAXTree", [:])
        let nodes = tree?["nodes"] as? [[String: Any]] ?? []
        try #require(nodes.count > 5)
        for node in nodes where node["ignored"] as? Bool != true {
            let role = (node["role"] as? [String: Any])?["value"] as? String ?? ""
            let name = (node["name"] as? [String: Any])?["value"] as? String ?? ""
            if Self.named.contains(role), name.trimmingCharacters(in: .whitespaces).isEmpty {
                faults.append("a \(role) has no name")
            }
        }
        faults += try await browser.script(Self.script) as? [String] ?? ["the page could not be looked at"]
    }

    /// Landmarks, headings in order, labels, the order of focus, what scrolls sideways, and the contrast of every text
    /// (WCAG 2.2, success criterion 1.4.3).
    private static let script = """
        const faults = [];
        if (!document.documentElement.lang) faults.push("the page has no language");
        if (document.querySelectorAll("main").length !== 1) faults.push("there is not one main part");
        if (document.querySelectorAll("h1").length !== 1) faults.push("there is not one first heading");
        if (!document.title) faults.push("the page has no title");
        let level = 1;
        for (const heading of document.querySelectorAll("h1,h2,h3,h4")) {
          const own = Number(heading.tagName[1]);
          if (own > level + 1) faults.push("a heading is skipped before: " + heading.textContent);
          level = own;
        }
        for (const element of document.querySelectorAll("[tabindex]"))
          if (element.tabIndex > 0) faults.push("out of the order of focus: " + element.outerHTML.slice(0, 80));
        if (document.documentElement.scrollWidth > window.innerWidth + 1)
          faults.push("the page scrolls sideways: " + document.documentElement.scrollWidth + " of " + window.innerWidth);
        const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return { c: n.slice(0, 3), a: n[3] ?? 1 } };
        const light = (c) => { const [r, g, b] = c.map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 });
          return .2126 * r + .7152 * g + .0722 * b };
        const over = (top, below) => top.c.map((v, i) => v * top.a + below[i] * (1 - top.a));
        const ground = (element) => { const layers = [];
          for (let e = element; e; e = e.parentElement) { const b = parse(getComputedStyle(e).backgroundColor); if (b.a > 0) { layers.push(b); if (b.a === 1) break } }
          let c = matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
          for (const layer of layers.reverse()) c = over(layer, c);
          return c };
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const seen = new Set();
        while (walker.nextNode()) {
          const element = walker.currentNode.parentElement;
          if (!walker.currentNode.textContent.trim() || seen.has(element) || element.closest("script,style,progress,svg,option,.visually-hidden,.skip")) continue;
          seen.add(element);
          if (!element.checkVisibility() || element.closest(":disabled")) continue;
          const style = getComputedStyle(element);
          const back = ground(element), front = over(parse(style.color), back);
          const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
          const ratio = (high + .05) / (low + .05), size = parseFloat(style.fontSize);
          const need = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
          if (ratio < need) faults.push("contrast " + ratio.toFixed(2) + ": " + element.textContent.trim().slice(0, 40));
        }
        return faults;
        """
}
