package import Model
package import Store
import Testing

extension DeliveryQueueContract {
    @PromiseList static var holdout: [Promise] {
        Promise("the holdout is suppressed, everybody else has a variant, and the plan said so") { store in
            try await populate(store)
            let definition = try split()
            let reach = try await store.reach(of: definition.campaign, budget: nil, now: noon)
            let run = try await store.startRun(definition)
            try await store.expectSumsClose(run)
            let report = try await store.report(run)
            let suppressed = Dictionary(uniqueKeysWithValues: report.suppressed.map { ($0.reason, $0.count) })
            // Some of the 300 are in the holdout, which comes first.
            #expect((240..<300).contains(suppressed["alerts_not_allowed"] ?? 0))
            #expect(suppressed["holdout"] == reach.holdout && (220...380).contains(reach.holdout))
            #expect(report.byVariant.map(\.name) == ["long", "short"])
            #expect(report.byVariant.map(\.counts.pending) == reach.byVariant)
            #expect(report.byVariant.reduce(0) { $0 + $1.counts.audience } + reach.holdout == 3000)
            #expect(reach.byVariant.reduce(0, +) == reach.total)
            #expect(reach.byZone.reduce(0) { $0 + $1.count } == reach.total)
            #expect(Set(reach.byZone.map(\.zone)) == [nil, "Europe/Berlin", "America/Sao_Paulo"])
            #expect(report.counts.pending == reach.total)
            #expect(reach.total + reach.suppressed.values.reduce(0, +) == 3000)
        }
        Promise("every run of a campaign splits alike, another campaign does not") { store in
            try await populate(store)
            var splits: [[Int64: Int?]] = []
            for (name, occurrence) in [("new-podcast", "1"), ("new-podcast", "2"), ("other", "1")] {
                var definition = try split()
                definition.campaign.name = name
                let run = try await store.startRun(definition, occurrence: occurrence)
                let outcomes = Collected<OutcomeRow>()
                _ = try await store.outcomes(run: run) { outcomes.add($0) }
                splits.append(Dictionary(uniqueKeysWithValues: outcomes.all.map { ($0.device, $0.variant) }))
            }
            #expect(splits[0] == splits[1])
            #expect(splits[0] != splits[2])
        }
        Promise("leases tell the variant, and languages are those of its template") { store in
            try await populate(store)
            let definition = try split()
            let run = try await store.startRun(definition)
            let lease = try await store.lease(run, limit: 5000)
            let expected = CampaignSplit(definition.campaign)
            for delivery in lease.deliveries {
                #expect(delivery.variant == expected.variant(of: delivery.device))
                #expect(!expected.isHeldOut(delivery.device))
            }
            // Index 0 is "en" for one, "fr" for the other; index 1 is "de" for both.
            var settlements = lease.settlements(.accepted)
            for index in settlements.indices { settlements[index].localeIndex = index % 2 }
            _ = try await store.settle(run: run, settlements, now: noon)
            let report = try await store.report(run)
            #expect(report.byLocale.map(\.name) == ["en", "de", "fr", "not rendered"])
            #expect(report.byLocale.reduce(0) { $0 + $1.counts.accepted } == lease.deliveries.count)
            #expect(report.byLocale[1].counts.accepted == lease.deliveries.count / 2)
            #expect(report.byVariant.reduce(0) { $0 + $1.counts.accepted } == lease.deliveries.count)
            try await store.expectSumsClose(run)
        }
    }

    package static func split() throws -> RunDefinition {
        var definition = try definition {
            $0.holdoutPercent = 10
            $0.variants = [
                Campaign.Variant(name: "long", weight: 50, template: "new-podcast"),
                Campaign.Variant(name: "short", weight: 50, template: "brief"),
            ]
        }
        var brief = Template(name: "brief")
        let blocks = try ["fr", "de"].map { name in
            Template.LocalizedAlert(
                locale: try #require(LocaleTag(name)), title: nil, subtitle: nil, body: TemplateText(literal: name))
        }
        brief.alert = .localized(blocks)
        definition.variantTemplates = ["long": definition.template, "short": brief]
        return definition
    }

    package static func populate(_ store: any AllRoles) async throws {
        let records = try (1...3000).map { number in
            try record(number) {
                $0.alertsAllowed = number % 10 != 0
                $0.timeZone = number % 3 == 0 ? nil : number % 3 == 1 ? "Europe/Berlin" : "America/Sao_Paulo"
            }
        }
        _ = try await store.importDevices(records, now: noon)
    }
}
