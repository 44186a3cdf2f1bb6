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
        if let seeds, seeds.expression.namesEveryone {
            refuse(
                "seeds", "seeds select everyone, but a stage must limit a fault to a few devices",
                "name the devices of people you know, for example segment(\"staff\")", reader)
        }
        if isRest {
            for key in ["hold", "tolerate"] where reader.keyLocation(key) != nil {
                refuse(
                    key, "no stage comes after the rest, so the key has no effect",
                    "write \(key) on the previous stage", reader)
            }
            return Stage(.rest, needsApproval: needsApproval)
        }
        let members: Stage.Members? = seeds.map { .seeds($0.expression) } ?? share.map { .share($0) }
        return members.map {
            Stage($0, hold: hold, toleratePercent: tolerate, needsApproval: needsApproval)
        }
    }

    private static func refuse(_ key: String, _ what: String, _ advice: String, _ reader: ObjectReader) {
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
    static func check(_ campaign: Campaign, _ reader: ObjectReader) {
        guard let stages = campaign.stages, let location = reader.keyLocation("stages") else { return }
        let hold = stages.reduce(Duration.zero) { $0 + ($1.hold ?? .zero) }
        guard let life = campaign.expiresAfter, hold > .zero, hold >= life else { return }
        reader.collector.error(
            "the stages hold for \(WrittenDuration.text(hold)), but the pushes expire after "
                + "\(WrittenDuration.text(life)): the remaining devices would never get it",
            "hold for less, or write a longer expires_after", at: location)
    }
}
