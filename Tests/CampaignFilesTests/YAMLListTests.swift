import CampaignFiles
import Testing

/// A new item in the list of apps: what a person wrote stays as it is.
struct YAMLListTests {
    private static let item: [YAMLText.Edit] = [
        .init(["topic"], .word("b")), .init(["keys", "sandbox", "key_id"], .word("K")),
        .init(["keys", "sandbox", "key_path"], .word("k.p8")), .init(["team_id"], .word("T")),
    ]

    private static let lines = [
        "- topic: b", "  keys:", "    sandbox:", "      key_id: K", "      key_path: k.p8", "  team_id: T",
    ]

    private static func added(_ indentation: Int = 2) -> String {
        lines.map { String(repeating: " ", count: indentation) + $0 + "\n" }.joined()
    }

    @Test(arguments: [
        ("store: x\n", "store: x\napps:\n" + added()), ("store: x", "store: x\napps:\n" + added()),
        ("apps: []\nstore: x\n", "apps:\n" + added() + "store: x\n"),
        ("apps: # none\nstore: x\n", "apps: # none\n" + added() + "store: x\n"),
        ("apps: [ ] # none\n", "apps: # none\n" + added()),
        (
            "apps:\n  - topic: a # first\n    team_id: S\n    # of a\n\n# of the store\nstore: x\n",
            "apps:\n  - topic: a # first\n    team_id: S\n    # of a\n" + added() + "\n# of the store\nstore: x\n"
        ),
        ("apps:\n- topic: a\nstore: x\n", "apps:\n- topic: a\n" + added(0) + "store: x\n"),
        ("apps:\n  -\n    topic: a\nstore: x\n", "apps:\n  -\n    topic: a\n" + added() + "store: x\n"),
        ("apps:\n  - {topic: a}\n", "apps:\n  - {topic: a}\n" + added()),
    ])
    func `an item goes behind the others, and everything else stays`(before: String, after: String) throws {
        var text = YAMLText(before)
        try text.append(Self.item, to: "apps")
        #expect(text.written == after)
    }

    @Test func `the line ends of the file stay`() throws {
        var text = YAMLText("store: x\r\napps: []\r\n")
        try text.append(Self.item, to: "apps")
        #expect(text.written == ("store: x\napps:\n" + Self.added()).replacing("\n", with: "\r\n"))
    }

    @Test(arguments: ["apps: [{topic: a}]\n", "apps: word\n", "{apps: []}\n", "apps: &a []\nother: *a\n"])
    func `a list in another form is left to a person`(before: String) {
        var text = YAMLText(before)
        #expect(throws: YAMLText.Fault.unsuitable(path: "apps")) { try text.append(Self.item, to: "apps") }
        #expect(text.written == before)
    }
}
