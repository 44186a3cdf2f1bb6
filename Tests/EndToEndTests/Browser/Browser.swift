import Foundation
import TestSupport
import Testing
import WebClient

/// A headless Chromium, driven by WebDriver (W3C) through Debian's `chromedriver`; ends with its last reference.
final class Browser {
    /// `.ci/run` installs both and says so: a browser that is missing then fails the tests.
    static let isAsked = ProcessInfo.processInfo.environment["BROWSER_TESTS"] != nil

    enum Problem: Error {
        case refused(String)
    }

    /// An element of the page that is open, and how it was found.
    struct Element {
        fileprivate let id: String
        fileprivate let strategy: String
        fileprivate let place: String
    }

    private static let elementKey = "element-6066-11e4-a52e-4f735466cecf"
    /// For what a page does by itself.
    private static let waitMilliseconds = 60_000
    /// For what is looked for to be there.
    private static let lookMilliseconds = 60_000

    private let driver: Process
    private let folder: TemporaryDirectory
    private let address: String
    private var session = ""
    private let client: HTTPClient
    private let width: Int

    /// A driver takes a free port of IPv4 and then the same one of IPv6; where that is in use, it ends.
    private static func startDriver(in folder: TemporaryDirectory) throws -> (driver: Process, address: String) {
        for _ in 0..<5 {
            let driver = Process()
            let output = try folder.newFile()
            let changes = try FileChanges(folder: folder.path, names: [output.lastPathComponent])
            driver.executableURL = URL(fileURLWithPath: "/usr/bin/chromedriver")
            driver.arguments = ["--port=0"]
            driver.standardOutput = try FileHandle(forWritingTo: output)
            driver.standardError = FileHandle.nullDevice
            driver.terminationHandler = { _ in changes.raise() }
            try driver.run()
            let deadline = ContinuousClock.now + Process.longest
            while driver.isRunning {
                let words = try String(contentsOf: output, encoding: .utf8)
                if let port = words.firstMatch(of: /started successfully on port (\d+)/)?.1 {
                    return (driver, "http://127.0.0.1:\(port)")
                }
                try #require(ContinuousClock.now < deadline, "chromedriver does not start")
                try changes.wait(until: deadline)
            }
        }
        throw DriverEnded()
    }

    private struct DriverEnded: Error {}

    /// - Parameter hasScript: false: as if the visitor had switched JavaScript off.
    private init(width: Int, height: Int, isDark: Bool, hasScript: Bool) async throws {
        self.width = width
        folder = try TemporaryDirectory()
        (driver, address) = try Self.startDriver(in: folder)
        var limits = WebLimits()
        limits.totalTime = .seconds(240)
        limits.bodyBytesMax = 64 << 20
        client = HTTPClient(addresses: .any, limits: limits)
        var arguments = [
            "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--window-size=\(width),\(height)", "--user-data-dir=\(folder.file("profile"))",
        ]
        // Root has no sandbox.
        if geteuid() == 0 { arguments.append("--no-sandbox") }
        if !hasScript { arguments.append("--blink-settings=scriptEnabled=false") }
        let options: [String: Any] = ["args": arguments]
        let capabilities: [String: Any] = ["alwaysMatch": ["goog:chromeOptions": options]]
        let answer = try await ask("/session", ["capabilities": capabilities])
        session = "/session/" + ((answer as? [String: Any])?["sessionId"] as? String ?? "")
        _ = try await ask(session + "/timeouts", ["script": Self.waitMilliseconds, "implicit": Self.lookMilliseconds])
        let media = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        _ = try await protocolCommand("Emulation.setEmulatedMedia", ["features": [media]])
        try await setSize(height: height)
    }

    /// A window has a smallest width; a device has not.
    private func setSize(height: Any) async throws {
        let isPhone = width < 500
        try await protocolCommand(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": isPhone ? 2 : 1, "mobile": isPhone])
    }

    deinit { kill(driver.processIdentifier, SIGKILL) }

    /// A browser for as long as the body runs; none is left behind, whatever becomes of it.
    static func with(
        width: Int = 1280, isDark: Bool = false, hasScript: Bool = true, _ body: (Browser) async throws -> Void
    ) async throws {
        let browser = try await Browser(width: width, height: 900, isDark: isDark, hasScript: hasScript)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(browser))
        } catch {
            result = .failure(error)
        }
        // Ends the browser first, which else writes to its folder while that is removed.
        if (try? await browser.ask("/shutdown", [:])) != nil { browser.driver.waitForEnd() }
        try result.get()
    }

    func open(_ url: String) async throws { _ = try await ask(session + "/url", ["url": url]) }

    var url: String { get async throws { try await ask(session + "/url", nil) as? String ?? "" } }

    var source: String { get async throws { try await ask(session + "/source", nil) as? String ?? "" } }

    /// The first that a CSS selector finds; throws where there is none.
    func element(_ selector: String) async throws -> Element {
        try await find("css selector", selector)
    }

    /// The link or button that is named so.
    func named(_ text: String) async throws -> Element {
        let path =
            "//a[normalize-space()='\(text)']|//button[normalize-space()='\(text)']|//summary[normalize-space()='\(text)']"
        return try await find("xpath", path)
    }

    private func find(_ strategy: String, _ place: String) async throws -> Element {
        let found = try await ask(session + "/element", ["using": strategy, "value": place])
        let id = (found as? [String: Any])?[Self.elementKey] as? String
        return Element(id: try #require(id, "nothing is \(place)"), strategy: strategy, place: place)
    }

    /// Of an element. A live page may replace the element after it was found: then the one in its place is asked.
    private func ask(_ element: Element, _ path: String, _ body: [String: Any]?) async throws -> Any? {
        var element = element
        let end = ContinuousClock.now + .seconds(60)
        while true {
            do {
                return try await ask("\(session)/element/\(element.id)/\(path)", body)
            } catch Problem.refused(let reason) where Self.isReplaced(reason) && ContinuousClock.now < end {
                element = try await find(element.strategy, element.place)
            }
        }
    }

    /// Whether the page no longer has the element. The driver has two names for that.
    private static func isReplaced(_ reason: String) -> Bool {
        ["stale element reference", "does not belong to the document"].contains(where: reason.contains)
    }

    func click(_ element: Element) async throws { _ = try await ask(element, "click", [:]) }

    func click(_ selector: String) async throws { try await click(element(selector)) }

    /// Clicks on what leads to another page, and returns when that is there: on a slow machine the old one still answers for
    /// a while after the click.
    func follow(_ element: Element) async throws {
        let old = try await self.element("html").id
        try await click(element)
        let end = ContinuousClock.now + .seconds(60)
        while try await self.element("html").id == old {
            guard ContinuousClock.now < end else { throw Problem.refused("the click led to no other page") }
        }
    }

    func follow(_ selector: String) async throws { try await follow(element(selector)) }

    func type(_ text: String, into selector: String) async throws {
        _ = try await ask(element(selector), "value", ["text": text])
    }

    func text(_ selector: String) async throws -> String {
        try await ask(element(selector), "text", nil) as? String ?? ""
    }

    /// What a script returns; nil where it is null.
    func script(_ body: String) async throws -> Any? {
        let value = try await ask(session + "/execute/sync", ["script": body, "args": [Any]()])
        return value is NSNull ? nil : value
    }

    /// Returns once the expression is true, looked at again whenever the page changes; throws after some minutes.
    func wait(for expression: String) async throws {
        let body = """
            const done = arguments[arguments.length - 1];
            const look = () => { try { return (\(expression)) ? (done(true), true) : false } catch { return false } };
            if (!look()) {
              const observer = new MutationObserver(() => { if (look()) observer.disconnect(); });
              observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
            }
            """
        // A page that is left takes the script with it, and the driver calls that by more than one name, "script timeout"
        // among them: the page that is there then is asked.
        let end = ContinuousClock.now + .seconds(400)
        while true {
            do {
                _ = try await ask(session + "/execute/async", ["script": body, "args": [Any]()])
                return
            } catch Problem.refused(let reason) where ContinuousClock.now >= end {
                throw Problem.refused("never true: \(expression): \(reason)")
            } catch Problem.refused {
                continue
            }
        }
    }

    /// As PNG, the whole page, as in a window that is as high.
    func picture() async throws -> Data {
        let size = try await protocolCommand("Page.getLayoutMetrics", [:])
        let content = size?["cssContentSize"] as? [String: Any]
        let (pageWidth, height) = (content?["width"] ?? width, content?["height"] ?? 900)
        try await setSize(height: height)
        let clip: [String: Any] = ["x": 0, "y": 0, "width": pageWidth, "height": height, "scale": 1]
        let shot = try await protocolCommand(
            "Page.captureScreenshot", ["format": "png", "captureBeyondViewport": true, "clip": clip])
        try await setSize(height: 900)
        return Data(base64Encoded: shot?["data"] as? String ?? "") ?? Data()
    }

    /// What a click saves, under this name, once it ends so: Chromium may take the name with an empty file first.
    func download(_ name: String, endingWith end: String, by link: Element) async throws -> String {
        let changes = try FileChanges(folder: folder.path, names: [name])
        try await protocolCommand(
            "Browser.setDownloadBehavior", ["behavior": "allow", "downloadPath": folder.path])
        try await click(link)
        let file = URL(fileURLWithPath: folder.file(name))
        let deadline = ContinuousClock.now + Process.longest
        while true {
            let text = String(decoding: (try? Data(contentsOf: file)) ?? Data(), as: UTF8.self)
            if text.hasSuffix(end) { return text }
            try #require(ContinuousClock.now < deadline, "never ends with \(end): \(text.suffix(200))")
            try await OwnThread.run { try changes.wait(until: deadline) }
        }
    }

    /// Of the browser's own protocol, for what WebDriver has no word for.
    @discardableResult
    func protocolCommand(_ name: String, _ parameters: [String: Any]) async throws -> [String: Any]? {
        try await ask(session + "/goog/cdp/execute", ["cmd": name, "params": parameters]) as? [String: Any]
    }

    private func ask(_ path: String, _ body: [String: Any]?) async throws -> Any? {
        let method: WebRequest.Method =
            if let body { .post(body: [UInt8](try JSONSerialization.data(withJSONObject: body))) } else { .get }
        let request = WebRequest(method, address + path, headers: ["Content-Type": "application/json"])
        let data = Data(try await client.send(request).body)
        let answer = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        let value = answer?["value"]
        if let refusal = value as? [String: Any], let error = refusal["error"] as? String {
            throw Problem.refused("\(path): \(error): \(refusal["message"] ?? "")")
        }
        return value
    }
}
