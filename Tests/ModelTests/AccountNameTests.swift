import Model
import Testing

/// What the name of an account is, and when two accounts are one.
struct AccountNameTests {
    /// "é" as one scalar and as two: equal to Swift, and two names of two tokens to a store.
    private static let composed = "\u{E9}lise-mac"
    private static let separate = "e\u{301}lise-mac"

    @Test func `two spellings of a name are two accounts`() {
        #expect(Self.composed == Self.separate)
        let people = People(["elise": ["token:\(Self.composed)"]])
        #expect(people.person("token:\(Self.composed)") == "elise" && people.knows("token:\(Self.composed)"))
        #expect(!people.knows("token:\(Self.separate)"))
        #expect(Array(people.person("token:\(Self.separate)").utf8) == Array("token:\(Self.separate)".utf8))
        let rules = ApprovalRules(
            rules: [], breakGlass: true, breakGlassBy: ["token:\(Self.composed)"])
        #expect(
            rules.mayOverride("token:\(Self.composed)")
                && !rules.mayOverride("token:\(Self.separate)"))
    }

    @Test func `a proxy's name and a mail address are compared without regard to case, a mail address in both forms`() {
        let people = People(["elise": ["proxy:Elise", "git:\(Self.composed)@example.org", "token:Mac"]])
        for account in ["proxy:ELISE", "git:\(Self.separate)@EXAMPLE.org"] {
            #expect(people.person(account) == "elise", "\(account)")
        }
        #expect(!people.knows("token:mac") && !people.knows("os:elise"))
    }

    @Test(arguments: [
        "anna", "anna-mac", "Anna.B_2@example", String(repeating: "a", count: 64),
    ])
    func `a new token's name is of ASCII`(name: String) {
        #expect(AccountName.isForToken(name))
    }

    @Test(arguments: [
        "", "7up", "-a", "#17", "an na", composed, separate, "аnna", "\u{212A}ate", "anna\u{200B}", "a:b", "a\u{0}",
        String(repeating: "a", count: 65),
    ])
    func `a new token's name looks like no other's`(name: String) {
        #expect(!AccountName.isForToken(name))
    }

    @Test func `a name from elsewhere is in one form, and visible`() {
        for name in ["anna", Self.composed, "Анна", "安娜", "anna b"] { #expect(AccountName.isPlain(name), "\(name)") }
        for name in [Self.separate, "\u{212A}ate", "anna\u{200B}", "an\u{AD}na", "anna\n", "a\u{600}nna", "\u{E000}"] {
            #expect(!AccountName.isPlain(name), "\(name.unicodeScalars.map(\.value))")
        }
    }

    @Test func `a token is one account by its name and by its id`() {
        let configured = ConfiguredPeople(["anna": ["token:#17", "os:anna"], "ben": ["token:ben-mac", "token:#18"]])
        #expect(configured.tokenIDs == [17, 18] && configured.tokenNames == ["token:ben-mac"])
        let people = configured.people(tokenNames: [17: "anna-mac"])
        #expect(people.person("token:anna-mac") == "anna" && people.person("token:ben-mac") == "ben")
        // An id that no token has is nobody's.
        #expect(!people.knows("token:carl") && people.identities["ben"] == ["token:ben-mac", "token:#18"])
        // A token of the same name in another store is another token.
        #expect(!configured.people(tokenNames: [17: "other"]).knows("token:anna-mac"))
        #expect(
            configured.person(ofTokenNamed: "ben-mac") == "ben" && configured.person(ofTokenNamed: "anna-mac") == nil)
        for text in ["token:#0", "token:#-1", "token:#017", "token:#1x", "token:#", "token:17", "os:#17"] {
            #expect(ConfiguredPeople.tokenID(text) == nil, "\(text)")
        }
    }
}
