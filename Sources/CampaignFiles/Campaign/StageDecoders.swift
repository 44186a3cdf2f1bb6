import Model

extension ValueDecoder where Value == Bool {
    static var approval: ValueDecoder {
        let shape = ValueShape.choice(["approval"])
        return ValueDecoder(shape: shape) { field in
            guard field.node.text == "approval" else {
                field.refuse(shape)
                return nil
            }
            return true
        }
    }
}

extension ValueDecoder where Value == Double {
    /// Returns the percentage of the usual share.
    static var opensAtLeast: ValueDecoder {
        let form = TextForm.pattern(#"^[0-9]+(\.[0-9]+)?% of usual$"#)
        return parsed("a percentage of the usual opens", example: "50% of usual", form: form) { text in
            guard text.hasSuffix("% of usual") else { return nil }
            return Double(text.dropLast("% of usual".count)).flatMap { (1...100).contains($0) ? $0 : nil }
        }
    }
}

extension ValueDecoder where Value == Stage {
    /// The stage that decides which variant the rest gets.
    static var decide: ValueDecoder {
        .object(CampaignKeys.Decide.shape) { reader in
            let keys = CampaignKeys.Decide.self
            let rule = VariantRule(by: reader[keys.by] ?? .opens, undecided: reader[keys.undecided] ?? .wait)
            guard let share = reader[keys.share], let after = reader[keys.after] else { return nil }
            if !(0.01..<100).contains(share) {
                StageReader.refuse(
                    "share", "share is not between 0.01% and 100%",
                    "keep some devices for the rest, for example share: 20%", reader)
            }
            return Stage(.share(share), hold: after, decides: rule)
        }
    }
}

extension ValueDecoder where Value == [Stage] {
    static var stages: ValueDecoder {
        let element = ValueDecoder<Stage>.object(CampaignKeys.Stage.shape, StageReader.stage)
        let list = ValueDecoder<[Stage]>.list(of: element)
        return ValueDecoder(shape: list.shape) { field in
            guard let stages = list.read(field) else { return nil }
            // If a stage failed to decode, its position is unknown: skip the order check.
            guard case .list(let nodes) = field.node.content, nodes.count == stages.count else { return stages }
            StageReader.checkOrder(stages, nodes.map(\.location), field)
            return stages
        }
    }
}

/// The decoding and the checks of a campaign file's stages.
private enum StageReader {
    static func stage(_ reader: ObjectReader) -> Stage? {
        let keys = CampaignKeys.Stage.self
        let (seeds, share, isRest) = (reader[keys.seeds], reader[keys.share], reader[keys.rest] ?? false)
        let hold = reader[keys.hold]
        let tolerate = reader[keys.tolerate]
        let needsApproval = reader[keys.needs] ?? false
        let opensAtLeast = reader[keys.opensAtLeast]
        let given = ["seeds", "share", "rest"].filter { reader.keyLocation($0) != nil }
        guard given.count == 1 else {
            reader.collector.error(
                given.isEmpty ? "the stage selects no devices" : "the stage has \(given.joined(separator: " and "))",
                "write one of seeds, share and rest", at: reader.location)
            return nil
        }
        if let share, share < 0.01 { refuse("share", "share is below 0.01%", "write a larger one", reader) }
        if let tolerate, !(0.1...90).contains(tolerate) {
            refuse("tolerate", "tolerate is not between 0.1% and 90%", "write a share from 0.1% to 90%", reader)
        }
        if reader.keyLocation("opens_at_least") != nil, !isRest, hold ?? .zero < .seconds(60) {
            refuse(
                "opens_at_least", "opens_at_least needs a hold of 1m or more, in which people can open the push",
                "write a hold, for example hold: 30m", reader)
        }
        if let seeds, seeds.expression.namesEveryone {
            refuse(
                "seeds", "seeds select everyone, but a stage must limit a fault to a few devices",
                "name the devices of people you know, for example segment(\"staff\")", reader)
        }
        if isRest {
            for key in ["hold", "tolerate", "opens_at_least"] where reader.keyLocation(key) != nil {
                refuse(
                    key, "no stage comes after the rest, so the key has no effect",
                    "write \(key) on the previous stage", reader)
            }
            return Stage(.rest, needsApproval: needsApproval)
        }
        let members: Stage.Members? = seeds.map { .seeds($0.expression) } ?? share.map { .share($0) }
        return members.map {
            Stage(
                $0, hold: hold, toleratePercent: tolerate, needsApproval: needsApproval,
                opensAtLeastPercent: opensAtLeast)
        }
    }

    fileprivate static func refuse(_ key: String, _ what: String, _ advice: String, _ reader: ObjectReader) {
        reader.collector.error(what, advice, at: reader.keyLocation(key) ?? reader.location)
    }

    static func checkOrder(_ stages: [Stage], _ locations: [SourceLocation], _ field: Field) {
        guard stages.count > 1 else {
            if let only = stages.first, only.members != .rest {
                return field.error("stages has only \(only.summary)", "add {rest: true} after it")
            }
            field.error("stages has no stage before the rest", "add one, for example {share: 1%, hold: 15m}")
            return
        }
        if stages.count > Stage.countMax {
            field.error("there are \(stages.count) stages", "use at most \(Stage.countMax)")
        }
        if stages.last?.members != .rest {
            field.collector.error(
                "the last stage is not the rest, so the remaining devices would never get it",
                "add {rest: true} after it",
                at: locations[locations.count - 1])
        }
        var sum = 0.0
        var isSharing = false
        for (index, stage) in stages.enumerated() {
            switch stage.members {
            case .seeds where isSharing:
                field.collector.error(
                    "seeds come after a share",
                    "put the seeds first: these devices must get the push before all others", at: locations[index]
                )
            case .seeds: break
            case .share(let percent):
                isSharing = true
                sum += percent
                if sum > 100 {
                    field.collector.error(
                        "up to here the shares add up to \(sum.percentText)", "together the shares may be at most 100%",
                        at: locations[index])
                }
            case .rest where index < stages.count - 1:
                field.collector.error(
                    "the stage with rest is not the last", "make it the last stage", at: locations[index])
            case .rest: break
            }
        }
    }
}

/// The checks of a campaign's stages together with its other keys.
enum StageRules {
    /// Puts the stage that decides which variant the rest gets before the rest.
    static func adding(_ deciding: Stage, to stages: [Stage]?) -> [Stage] {
        let stages = stages ?? [Stage(.rest)]
        return stages.dropLast() + [deciding] + stages.suffix(1)
    }

    /// - Parameter withoutFeedback: gets the errors of a campaign without feedback.
    static func check(_ campaign: Campaign, _ reader: ObjectReader, _ withoutFeedback: DiagnosticCollector) {
        checkFeedback(campaign, reader, withoutFeedback)
        guard let stages = campaign.stages, let location = reader.keyLocation("stages") ?? reader.keyLocation("decide")
        else { return }
        let hold = stages.reduce(Duration.zero) { $0 + ($1.hold ?? .zero) }
        guard let life = campaign.expiresAfter, hold > .zero, hold >= life else { return }
        reader.collector.error(
            "the stages hold for \(WrittenDuration.text(hold)), but the pushes expire after "
                + "\(WrittenDuration.text(life)): the remaining devices would never get it",
            "hold for less, or write a longer expires_after", at: location)
    }

    /// Checks that the app reports what the stages ask for.
    private static func checkFeedback(
        _ campaign: Campaign, _ reader: ObjectReader, _ withoutFeedback: DiagnosticCollector
    ) {
        let stages = campaign.stages ?? []
        if stages.contains(where: { $0.opensAtLeastPercent != nil }), let location = reader.keyLocation("stages") {
            withoutFeedback.error(
                "opens_at_least needs the app's reports of opens", "add feedback: true", at: location)
        }
        guard let location = reader.keyLocation("decide") else { return }
        if reader.keyLocation("variants") == nil || campaign.variants.count == 1 {
            reader.collector.error(
                "decide compares variants, but the campaign has fewer than two", "add variants, or remove decide",
                at: location)
        }
        guard let rule = stages.lazy.compactMap(\.decides).first else { return }
        switch rule.by {
        case .opens:
            withoutFeedback.error("decide needs the app's reports of opens", "add feedback: true", at: location)
        case .conversion where campaign.conversion == nil:
            reader.collector.error(
                "decide compares conversions, but the campaign names none",
                "add conversion, for example conversion: {event: played_episode}", at: location)
        case .conversion: break
        }
        let shares = stages.reduce(0.0) { sum, stage in
            if case .share(let percent) = stage.members { sum + percent } else { sum }
        }
        if shares >= 100 {
            reader.collector.error(
                "the shares of stages and decide add up to \(shares.percentText), so no device is left for the rest",
                "reduce the shares", at: location)
        }
        if stages.count > Stage.countMax {
            reader.collector.error(
                "decide counts as a stage, so there are \(stages.count) stages",
                "use at most \(Stage.countMax)", at: location)
        }
    }
}
