import APNsSimulator
import Foundation
import TestSupport
import Testing

/// Each mistake: one line that says what to do, the right exit code, and a store that opens again afterwards.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `Bad input` {
    private func expect(
        _ result: Program.Result, status: Int32, says words: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(result.status == status, "\(result.errors)", sourceLocation: sourceLocation)
        for word in words {
            #expect(
                result.errors.contains(word), "\"\(word)\" is missing in: \(result.errors)",
                sourceLocation: sourceLocation)
        }
        #expect(!result.errors.contains("Swift."), sourceLocation: sourceLocation)
    }

    @Test func `files that are missing, malformed or of an unknown name`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        expect(try place.fanfare("plan", "new-podcst"), status: 66, says: "did you mean \"new-podcast\"?")
        expect(try place.fanfare("report", "42"), status: 66, says: "no run 42")
        expect(try place.fanfare("devices", "show", "nobody"), status: 66, says: "no device")
        expect(try place.fanfare("devices", "import", "nowhere.csv"), status: 66, says: "nowhere.csv")
        expect(try place.fanfare("run"), status: 64)
        expect(try place.fanfare("run", "new-podcast", "--yes"), status: 65, says: "--var title=")
        expect(
            try place.fanfare("plan", "new-podcast", "--var", "titel=x"), status: 65, says: "did you mean \"title\"?")
        try place.folder.write(
            "campaign: broken\ntopic: com.example.wendercast\naudiance: x\npriority: high\n",
            to: "campaigns/broken.yaml")
        expect(
            try place.fanfare("run", "broken"), status: 65, says: "broken.yaml:3:1: error:",
            "did you mean \"audience\"?",
            "broken.yaml:4:11: error:")
        expect(try place.fanfare("devices", "show"), status: 0)
    }

    @Test func `a slip in a text is said before anybody sends, and a dead link where that is asked for`() throws {
        let server = try LocalServer { .init($0.path == "/there" ? 200 : 404) }
        let place = try Installation(devices: 2)
        try place.importDevices()
        try place.folder.write(
            """
            template: slip
            alert: {en: {title: News, body: "{{text}}"}}
            custom: {a: "\(server.url)/there", b: "\(server.url)/gone"}

            """, to: "templates/slip.yaml")
        try place.folder.write(
            "campaign: slip\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: slip\naudience: everyone\n"
                + "expires_after: 1h\nvariables: {text: \"1\"}\n", to: "campaigns/slip.yaml")
        let warning = "templates/slip.yaml:2:33: warning: the body in en is \"1\": 1 letter; under 3 letters "
        let checked = try place.fanfare("validate", "campaigns/slip.yaml")
        #expect(checked.status == 0 && checked.output.contains(warning), "\(checked.output)")
        #expect(!checked.output.contains("dead-link"))
        #expect(try place.fanfare("validate", "campaigns/slip.yaml", "--strict").status == 65)
        let linked = try place.fanfare("validate", "campaigns/slip.yaml", "--links")
        #expect(linked.output.contains("/gone does not respond: status 404; "), "\(linked.output)")
        #expect(!linked.output.contains("/there does"))
        let plan = try place.fanfare("plan", "slip")
        #expect(plan.errors.contains(warning) && plan.output.contains("PRODUCTION: "), "\(plan.errors)\(plan.output)")
        let sent = try place.fanfare("run", "slip", "--yes", "--var", "text={name}")
        #expect(sent.status == 0 && sent.errors.contains("[unfilled-placeholder]"), "\(sent.errors)")
    }

    @Test func `a template for tests goes to the one device that is named`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        try place.folder.write(
            "template: draft\ntest: true\nalert: {en: {body: Hello there}}\n", to: "templates/draft.yaml")
        try place.folder.write(
            "campaign: draft\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: draft\naudience: everyone\n"
                + "expires_after: 1h\n", to: "campaigns/draft.yaml")
        expect(
            try place.fanfare("run", "draft", "--yes", "--override-guard", "test_template"), status: 3,
            says: "template draft is for tests (test: true)")
        expect(try place.fanfare("test-send", "draft", "--device", "install-%"), status: 66, says: "no device")
        #expect(place.simulator.counts().requests == 0)
        expect(
            try place.fanfare("test-send", "draft", "--device", "install-1"), status: 0,
            says: "1 device, install-1, and to no other")
        #expect(place.simulator.counts().requests == 1)
    }

    @Test(arguments: [
        ("", "name is empty"), ("  ", "name is empty"), ("o1 ", "write \"o1\""), (" o1", "write \"o1\""),
        ("o1\n", "write \"o1\""), ("o1\u{200B}", "write \"o1\""),
    ])
    func `an occurrence without a name, or with blanks around it, sends nothing`(name: String, words: String) throws {
        let place = try Installation(devices: 2)
        try place.importDevices()
        expect(try place.run("new-podcast", "--occurrence", name), status: 64, says: words)
        #expect(place.simulator.counts().requests == 0)
        expect(try place.run("new-podcast", "--occurrence", "o1"), status: 0)
        #expect(place.simulator.counts().accepted == 2)
    }

    @Test func `a certificate with a password says where the password goes, and takes it from there`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        let folder = place.folder
        try OpenSSLCommand.run(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
            "/UID=\(Installation.topic)/CN=Apple Push Services", "-keyout", folder.file("c.key"), "-out",
            folder.file("c.pem"))
        try OpenSSLCommand.run(
            "pkcs12", "-export", "-in", folder.file("c.pem"), "-inkey", folder.file("c.key"), "-out",
            folder.file("c.p12"), "-passout", "pass:hunter2")
        func configure(_ line: String) throws {
            try folder.write(
                "store: fanfare.sqlite\napps:\n  - topic: \(Installation.topic)\n    certificate_path: c.p12\n"
                    + "    endpoints: {production: \"127.0.0.1:1\", sandbox: \"127.0.0.1:1\"}\n\(line)",
                to: "fanfare.yaml")
        }
        let send = ["test-send", "refresh-episodes", "--device", "install-0"]
        try configure("")
        let none = try Program.run(send, in: folder)
        expect(none, status: 78, says: "certificate_password_path", "FANFARE_CERTIFICATE_PASSWORD")
        try configure("    certificate_password_path: c.password\n")
        let missing = try Program.run(send, in: folder)
        expect(missing, status: 78, says: "the certificate's password from", ": there is no such file; ")
        try folder.write("wrong\n", to: "c.password")
        expect(try Program.run(send, in: folder), status: 78, says: "is wrong", "certificate_password_path")
        try folder.write("hunter2\n", to: "c.password")
        // Nobody answers there; the certificate was taken.
        #expect(try !Program.run(send, in: folder).errors.contains("password"))
    }

    @Test func `an unknown template or segment`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        let text = try place.folder.read("campaigns/refresh-episodes.yaml")
        try place.folder.write(
            text.replacing("campaign: refresh-episodes", with: "campaign: other")
                .replacing("template: refresh-episodes", with: "template: refresh-epsodes"),
            to: "campaigns/other.yaml")
        expect(try place.fanfare("plan", "other"), status: 65, says: "refresh-epsodes")
        try place.folder.write(
            "campaign: third\ntopic: com.example.wendercast\npush_type: background\ntemplate: refresh-episodes\n"
                + "audience: segment(\"podcast-fan\")\nvariables: {reason: new}\n",
            to: "campaigns/third.yaml")
        expect(try place.fanfare("plan", "third"), status: 65, says: "did you mean \"podcast-fans\"?")
    }

    @Test func `a configuration that is missing or wrong`() throws {
        let place = try Installation(devices: 1)
        expect(try place.fanfare("plan", "new-podcast", "--config", "no.yaml"), status: 78, says: "no.yaml")
        try place.folder.write("stor: x\n", to: "fanfare.yaml")
        expect(try place.fanfare("plan", "new-podcast"), status: 78, says: "did you mean \"store\"?")
        try place.configure()
        expect(
            try place.fanfare("devices", "show", environment: ["FANFARE_STORE": "/nowhere/at/all.sqlite"]), status: 78,
            says: "/nowhere/at/all.sqlite")
    }

    @Test func `keys that cannot sign`() throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        try place.configure(keyPath: "none.p8")
        expect(try place.run("new-podcast"), status: 78, says: "none.p8")
        try place.folder.write("hello\n", to: "text.p8")
        try place.configure(keyPath: "text.p8")
        expect(try place.run("new-podcast"), status: 78, says: "text.p8")
        try place.configure()
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: place.folder.path + "/key.p8")
        expect(try place.run("new-podcast"), status: 0, says: "chmod 600")
    }

    @Test func `a file of CA certificates that is missing is found before a run is made`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        try place.configure(trust: "absent.pem")
        expect(
            try place.run("new-podcast", "--occurrence", "a"), status: 78,
            says: "absent.pem: No such file or directory; correct `trust` under `endpoints`")
        expect(try place.fanfare("status", "new-podcast/a"), status: 66, says: "a")
        let diagnosis = try place.fanfare("doctor")
        #expect(diagnosis.status == 78 && diagnosis.output.contains("absent.pem: No such file"), "\(diagnosis)")
        try place.configure()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
    }

    @Test func `a host that is away, or that nobody vouches for`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        try place.configure(production: "127.0.0.1:1")
        expect(try place.run("new-podcast", "--occurrence", "a"), status: 69, says: "127.0.0.1:1")
        let (other, _) = (try Installation(devices: 1), 0)
        try place.configure(trust: other.simulator.authorityPath)
        expect(try place.run("new-podcast", "--occurrence", "a"), status: 69, says: "trust")
        try place.configure()
        let finished = try place.run("new-podcast", "--occurrence", "a")
        #expect(finished.status == 0, "\(finished.errors)")
        #expect(place.simulator.counts().accepted == 3)
    }

    @Test func `a key that APNs does not know pauses the run and touches nothing`() throws {
        let place = try Installation(devices: 30)
        try place.importDevices()
        try place.configure(keyID: "OTHERKEY01")
        expect(
            try place.run("new-podcast", "--occurrence", "a"), status: 77, says: "InvalidProviderToken", "key_id")
        try place.configure()
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        #expect(place.simulator.counts().accepted == 30)
        #expect(try place.fanfare("report", "new-podcast", "--check").output.contains("The counts balance."))
    }

    @Test func `a store that is none, or of a newer version, stays as it is`() throws {
        let place = try Installation(devices: 1)
        try place.folder.write(String(repeating: "not a database ", count: 300), to: "fanfare.sqlite")
        expect(try place.fanfare("devices", "show"), status: 65, says: "not a SQLite database")
        #expect(try place.folder.read("fanfare.sqlite").hasPrefix("not a database"))
    }

    @Test func `a store of a newer version is refused by every command and not touched`() throws {
        let place = try Installation(devices: 2)
        try place.importDevices()
        try place.change("PRAGMA user_version = 99")
        let before = try Data(contentsOf: place.folder.url.appending(path: "fanfare.sqlite"))
        for words in [["devices", "show"], ["devices", "import", "devices.csv"], ["verify"], ["backup", "b.sqlite"]] {
            let result = try Program.run(words, in: place.folder)
            expect(result, status: 65, says: "store version 99", "use the newer Fanfare")
        }
        #expect(try Data(contentsOf: place.folder.url.appending(path: "fanfare.sqlite")) == before)
        #expect(!FileManager.default.fileExists(atPath: place.folder.path + "/b.sqlite"))
    }

    @Test func `bad device lines go to the rejects file and the rest is kept`() throws {
        let place = try Installation(devices: 3)
        try place.folder.write(
            try place.folder.read("devices.csv") + "zz,production,com.example.wendercast,x,,,,\n", to: "bad.csv")
        let result = try place.fanfare("devices", "import", "bad.csv")
        #expect(result.status == 65)
        #expect(result.output.contains("4 lines: 3 new"))
        #expect(try place.folder.read("bad.csv.rejects.csv").contains("5,"))
    }
}
