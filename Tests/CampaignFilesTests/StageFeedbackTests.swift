import CampaignFiles
import Model
import Testing

/// Stages that are judged by what people do.
@Suite struct `Stages by opens` {
    private static let head = """
        campaign: spring
        topic: com.example.wendercast
        push_type: alert
        template: spring
        audience: everyone

        """
    private static let variants = """
        variants:
          long: {weight: 1, template: spring}
          short: {weight: 1, template: spring-short}

        """

    private func read(_ text: String) -> (Campaign?, [String]) {
        let (campaign, diagnostics) = CampaignFile.read(text: Self.head + text, path: "a.yaml")
        return (campaign, diagnostics.map { "\($0.what); \($0.advice)" })
    }

    @Test func `decide puts a stage before the rest`() {
        let (campaign, problems) = read(
            Self.variants + "feedback: true\ndecide: {by: opens, after: 30m, share: 20%, undecided: first}\n")
        #expect(problems == [])
        let deciding = Stage(.share(20), hold: .seconds(1800), decides: VariantRule(by: .opens, undecided: .first))
        #expect(campaign?.stages == [deciding, Stage(.rest)] && campaign?.decidingStage == 0)
        let (staged, none) = read(
            Self.variants + "conversion: {event: played}\ndecide: {by: conversion, after: 1h, share: 20%}\n"
                + "stages:\n  - {share: 1%, hold: 15m}\n  - {rest: true, needs: approval}\n")
        #expect(none == [])
        #expect(
            staged?.stages == [
                Stage(.share(1), hold: .seconds(900)),
                Stage(.share(20), hold: .seconds(3600), decides: VariantRule(by: .conversion)),
                Stage(.rest, needsApproval: true),
            ])
    }

    @Test func `opens_at_least is written as a part of what is usual`() {
        let (campaign, problems) = read(
            "feedback: true\nstages:\n  - {share: 5%, hold: 30m, opens_at_least: 50% of usual}\n  - {rest: true}\n")
        #expect(problems == [])
        #expect(
            campaign?.stages == [Stage(.share(5), hold: .seconds(1800), opensAtLeastPercent: 50), Stage(.rest)])
    }

    @Test(arguments: [
        ("decide: {after: 30m, share: 20%}\nfeedback: true\n", "fewer than two; add variants"),
        (Self.variants + "decide: {after: 30m, share: 20%}\n", "reports of opens; add feedback: true"),
        (
            Self.variants + "decide: {by: conversion, after: 30m, share: 20%}\n",
            "the campaign names none; add conversion"
        ),
        (Self.variants + "feedback: true\ndecide: {after: 30m, share: 100%}\n", "share is not between"),
        (
            Self.variants + "feedback: true\ndecide: {after: 30m, share: 50%}\n"
                + "stages:\n  - {share: 50%}\n  - {rest: true}\n", "add up to 100 %, so no device is left for the rest"
        ),
        (Self.variants + "feedback: true\ndecide: {after: 5h, share: 20%}\nexpires_after: 4h\n", "expire after 4h"),
        (
            "stages:\n  - {share: 5%, hold: 30m, opens_at_least: 50% of usual}\n  - {rest: true}\n",
            "opens_at_least needs the app's reports of opens; add feedback: true"
        ),
        (
            "feedback: true\nstages:\n  - {share: 5%, opens_at_least: 50% of usual}\n  - {rest: true}\n",
            "needs a hold of 1m or more"
        ),
        (
            "feedback: true\nstages:\n  - {share: 5%, hold: 30m, opens_at_least: 50%}\n  - {rest: true}\n",
            "a percentage of the usual opens"
        ),
        (
            "feedback: true\nstages:\n  - {share: 5%}\n  - {rest: true, opens_at_least: 50% of usual}\n",
            "no stage comes after the rest"
        ),
    ])
    func `what cannot work is refused with what to write`(text: String, expected: String) {
        let (_, problems) = read(text)
        #expect(problems.contains { $0.contains(expected) }, "\(problems)")
    }
}
