import Model

/// The keys of a campaign file.
package enum CampaignKeys {
    static let name = Key("campaign", ValueDecoder<String>.name, required: true, "The campaign's name.")
    static let topic = Key(
        "topic", .topic, required: true,
        "The app's bundle id, without the push type's suffix; devices are those imported under it with the suffix, such as "
            + "com.example.app.voip for voip.")
    static let pushType = Key(
        "push_type", ValueDecoder<PushType>.word, required: true, "What kind of push APNs is told it is.")
    static let priority = Key("priority", .priority, "10 now, 5 with regard to the battery, 1 battery first.")
    static let ownClass = Key(
        "class", ValueDecoder<String>.name,
        "The word that the configuration's frequency_caps know it by, such as news; default when absent.")
    static let template = Key(
        "template", ValueDecoder<String>.name, required: true, "The template that says the words.")
    static let audience = Key(
        "audience", .audience,
        "Who gets it, as an expression; everyone is every device of the topic, and has to be written.")
    static let audienceSQL = Key(
        "audience_sql", .audienceSQL, "In place of audience: one SELECT of device ids from the store's views.")
    static let dedupe = Key(
        "dedupe", ValueDecoder<Campaign.Dedupe>.word,
        "user: of one user's devices in the audience only the one seen last gets it; all, when absent: each of them does."
    )
    static let variables = Key(
        "variables", .variables, "Defaults of the template's {{names}}; an empty one is required.")
    static let schedule = Key("schedule", .schedule, "When the campaign starts by itself.")
    static let trigger = Key("trigger", .trigger, "A feed whose new items start the campaign.")
    static let expiresAfter = Key(
        "expires_after", .duration(.zero ... .seconds(30 * 86_400), example: "4h"),
        "No attempt later than the planned time plus this; 0: one attempt, not stored by APNs.")
    static let collapse = Key(
        "collapse", .collapse,
        "run: pushes of one run replace each other on the screen. none: none do. Any other word: newer pushes with this word "
            + "replace older ones on the screen and, if they are background pushes, while they wait for the silent budget "
            + "(default: run for alerts; for background pushes the app and the template, without an apns-collapse-id).")
    static let pace = Key("pace", .pace, "How fast to send.")
    static let guards = Key("guards", .guards, "Limits that refuse a run.")
    static let onUnknown = Key(
        "on_unknown", ValueDecoder<Campaign.OnUnknown>.word, "What becomes of pushes whose answer was lost.")
    static let retry = Key("retry", .retry, "How often to try.")
    static let holdout = Key(
        "holdout", .percent(0...100), "Share of the audience left out, to compare with.")
    static let variants = Key(
        "variants", .variants, "Several templates tried against each other, each with its share of the audience.")

    static let stages = Key(
        "stages", .stages, "Parts of a run that must prove themselves one after the other before the rest goes.")

    static let correction = Key(
        "correction", ValueDecoder<String>.name,
        "The template that `fanfare correct` puts in the place of what was sent, prepared before it is needed.")

    /// The shape of the whole campaign file.
    package static let shape = ObjectShape(
        "campaign", "Who gets which template, when, and within which limits.", oneOf: ["audience", "audience_sql"],
        [
            name.shape, topic.shape, pushType.shape, priority.shape, ownClass.shape, template.shape,
            audience.shape, audienceSQL.shape, dedupe.shape,
            variables.shape,
            schedule.shape, trigger.shape, expiresAfter.shape, collapse.shape, pace.shape, guards.shape,
            onUnknown.shape, retry.shape,
            holdout.shape, variants.shape, stages.shape, correction.shape,
        ])

    enum Pace {
        static let rate = Key("rate", .pushesPerSecond, required: true, "The most pushes per second or minute.")
        static let ramp = Key(
            "ramp", .duration(.zero ... .seconds(86_400), example: "2m"), "Time to reach the rate.")
        static let shape = ObjectShape("pace", "How fast to send.", [rate.shape, ramp.shape])
    }

    enum Guards {
        static let maxReach = Key("max_reach", .integer(1...Int.max), "Refuse a run that reaches more devices.")
        static let minReach = Key("min_reach", .integer(0...Int.max), "Refuse a run that reaches fewer devices.")
        static let maxGrowth = Key(
            "max_growth", .percent(0...100_000), "Refuse a run that reaches so much more than the last one.")
        static let shape = ObjectShape(
            "guards", "Limits that refuse a run.", [maxReach.shape, minReach.shape, maxGrowth.shape])
    }

    enum Retry {
        static let maxAttempts = Key("max_attempts", .integer(1...20), "Attempts per device, the first included.")
        static let shape = ObjectShape("retry", "How often to try.", [maxAttempts.shape])
    }

    enum Variant {
        static let weight = Key("weight", .integer(1...1_000_000), required: true, "Its share, against the others'.")
        static let template = Key("template", ValueDecoder<String>.name, required: true, "The template it uses.")
        static let shape = ObjectShape("variant", "One of several templates.", [weight.shape, template.shape])
    }

    enum Stage {
        static let seeds = Key(
            "seeds", .audience,
            "At most \(Model.Stage.seedsMax) devices known by name, as an expression without everyone; they get it first, in the "
                + "audience or not.")
        static let share = Key("share", .percent(0...100), "A sample of the audience of this size.")
        static let rest = Key("rest", .yes, "Everybody who is in no stage before; the last stage.")
        static let hold = Key(
            "hold", .duration(.zero ... .seconds(7 * 86_400), example: "15m"),
            "How long the next stage waits after the last answer, for people to look.")
        static let tolerate = Key(
            "tolerate", .percent(0...100), "The share of refusals that is put up with; 5% when absent.")
        static let needs = Key("needs", .approval, "approval: it begins when a person has approved it.")
        static let shape = ObjectShape(
            "stage", "A part of a run.",
            [seeds.shape, share.shape, rest.shape, hold.shape, tolerate.shape, needs.shape])
    }

    enum Schedule {
        static let cron = Key("cron", .cron, "Five fields, or a word such as @daily or @weekly.")
        static let at = Key("at", .localTime, "A local date and time.")
        static let zone = Key("zone", .zone, "An IANA time zone; or recipient: by each device's own clock.")
        static let unknownZone = Key(
            "unknown_zone", .unknownZone, "The zone of a device without one; or drop. Required with zone: recipient.")
        static let missedZone = Key(
            "missed_zone", ValueDecoder<Model.Schedule.MissedZone>.word,
            "Devices whose time is over when the run starts; next_day when absent.")
        static let lateByMax = Key(
            "late_by_max", .duration(.zero ... .seconds(30 * 86_400), example: "2h"),
            "An occurrence found later than this is not sent, and a run left unfinished for longer waits for a person; "
                + "also without cron or at; 1h when absent.")
        static let quietHours = Key(
            "quiet_hours", .quietHours, "Hours without pushes, by each device's own clock; also without cron or at.")
        static let shape = ObjectShape(
            "schedule", "When the campaign starts by itself.",
            [
                cron.shape, at.shape, zone.shape, unknownZone.shape, missedZone.shape, lateByMax.shape,
                quietHours.shape,
            ])
    }

    enum Trigger {
        static let feed = Key("feed", .webAddress, required: true, "The address of an RSS or Atom feed.")
        static let every = Key(
            "every", .duration(.seconds(60) ... .seconds(7 * 86_400), example: "5m"),
            "The time from one poll to the next; 15m when absent.")
        static let variables = Key(
            "variables", .feedVariables, "Which variable gets what of the item, for example title: item.title.")
        static let lateByMax = Key(
            "late_by_max", .duration(.seconds(60) ... .seconds(30 * 86_400), example: "6h"),
            "An item published longer ago than this is not sent, and its run left unfinished for longer waits for a "
                + "person; 24h when absent.")
        static let newMax = Key(
            "max_new", .integer(1...100), "More new items than this at once are not sent; 3 when absent.")
        static let shape = ObjectShape(
            "trigger", "A feed whose new items start the campaign.",
            [feed.shape, every.shape, variables.shape, lateByMax.shape, newMax.shape])
    }

    enum QuietHours {
        static let from = Key("from", .minuteOfDay, required: true, "First quiet minute, local time.")
        static let to = Key("to", .minuteOfDay, required: true, "First minute after the quiet hours.")
        static let policy = Key(
            "policy", ValueDecoder<Model.Schedule.QuietHours.Policy>.word, "defer (wait) or drop.")
        static let shape = ObjectShape(
            "quiet_hours", "Local hours without pushes.", [from.shape, to.shape, policy.shape])
    }
}
