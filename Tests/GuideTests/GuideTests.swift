import Guide
import Testing

struct GuideTests {
    private let guide = Guide(reference: [
        GuidePage(name: "Reference.md", text: "# Reference\n\nEvery key.\n\n## Rares\n\nzyx")
    ])

    @Test(arguments: [
        ("FirstBroadcast.md", "first-broadcast"), ("API.md", "api"), ("WriteACampaign.md#next", "write-a-campaign"),
        ("ReferenceExitCodes.md", "reference-exit-codes"),
    ])
    func `names a page after its file`(file: String, name: String) {
        #expect(GuidePage.name(ofFile: file) == name)
    }

    @Test(arguments: ["https://example.com/a.md", "../Other/Page.md", "#next", "folder"])
    func `names no page after anything else`(target: String) {
        #expect(GuidePage.name(ofFile: target) == nil)
    }

    @Test func `begins each page with its title and a summary, under a name of its own`() {
        #expect(guide.pages.count == 19)
        #expect(Set(guide.pages.map(\.name)).count == guide.pages.count)
        for page in guide.pages {
            #expect(page.title != page.name, "\(page.name) has no title")
            #expect(!page.summary.isEmpty, "\(page.name) has no summary")
        }
    }

    @Test func `finds the section in which all words occur, in any case`() throws {
        let match = try #require(guide.search("ZYX rares").first)
        #expect(match.page.name == "reference")
        #expect(match.heading == "Rares")
        #expect(match.line == "zyx")
        #expect(guide.search("zyx nowhere-at-all").isEmpty)
        #expect(guide.search("  ").isEmpty)
    }

    @Test func `leads from each page to the next one`() throws {
        let pages = guide.pages
        #expect(guide.neighbours(of: pages[0]).previous == nil)
        #expect(guide.neighbours(of: pages[0]).next == pages[1])
        #expect(guide.neighbours(of: pages[pages.count - 1]).next == nil)
    }
}
