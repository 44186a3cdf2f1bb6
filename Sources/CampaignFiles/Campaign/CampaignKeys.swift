import Model

/// The keys of a campaign file.
package enum CampaignKeys {
    static let name = Key("campaign", ValueDecoder<String>.name, required: true, "The campaign's name.")
    static let topic = Key(
        "topic", .topic, required: true,
        "The app's bundle id, without the push type's suffix; its devices are imported with the suffix, such as "
            + "com.example.app.voip for voip.")
    static let pushType = Key(
        "push_type", ValueDecoder<PushType>.word, required: true, "The kind of push, as sent to APNs.")
    static let priority = Key(
        "priority", .priority,
        "10: send immediately. 5: consider the device's power. 1: power first, never wake the device.")
    static let ownClass = Key(
        "class", ValueDecoder<String>.name,
        "The class that the configuration's frequency_caps refer to, such as news (default: default).")
    static let template = Key(
        "template", ValueDecoder<String>.name, required: true, "The template with the texts.")
    static let audience = Key(
        "audience", .audience,
        "The devices to send to, as an expression; write everyone for every device of the topic.")
    static let audienceSQL = Key(
        "audience_sql", .audienceSQL, "In place of audience: one SELECT of device ids from the store's views.")
    static let dedupe = Key(
        "dedupe", ValueDecoder<Campaign.Dedupe>.word,
        "user: only the user's most recently seen device gets the push. all (default): every device gets it."
    )
    static let variables = Key(
        "variables", .variables, "Defaults of the template's {{names}}; a variable with an empty default is required.")
    static let schedule = Key("schedule", .schedule, "When the campaign starts automatically.")
    static let trigger = Key("trigger", .trigger, "A feed whose new items start the campaign.")
    static let expiresAfter = Key(
        "expires_after", .duration(.zero ... .seconds(30 * 86_400), example: "4h"),
        "How long after its planned time a push may be attempted; 0: one attempt, not stored by APNs.")
    static let collapse = Key(
        "collapse", .collapse,
        "run: pushes of one run replace each other on the screen. none: no push does. Any other word: newer pushes "
            + "with this word replace older ones on the screen and, if they are background pushes, while they wait for "
            + "the silent budget (default: run for alerts; one word per app and template for background pushes, sent without an "
            + "apns-collapse-id).")
    static let pace = Key("pace", .pace, "The rate limit of a run.")
    static let guards = Key("guards", .guards, "Limits beyond which a run is refused.")
    static let onUnknown = Key(
        "on_unknown", ValueDecoder<Campaign.OnUnknown>.word, "What to do with a push whose response was lost.")
    static let retry = Key("retry", .retry, "The number of attempts.")
    static let holdout = Key(
        "holdout", .percent(0...100), "The share of the audience that gets nothing, for comparison.")
    static let variants = Key(
        "variants", .variants, "Several templates to compare, each with its share of the audience.")

    static let stages = Key(
        "stages", .stages, "Parts of a run that must pass, one after the other, before the rest is sent.")

    static let decide = Key(
        "decide", .decide,
        "A share of the audience is split between the variants. The rest gets the variant that did best. The share is "
            + "sent after the stages and before their rest.")

    static let correction = Key(
        "correction", ValueDecoder<String>.name,
        "The template that `fanfare correct` sends to replace the original text, prepared in advance.")

    static let feedback = Key(
        "feedback", .feedback,
        "true: each push carries a reference with which the app reports opens. With arrivals, some devices report the "
            + "arrival, too. Default: the key `feedback` of the app in the configuration.")
    static let conversion = Key(
        "conversion", .conversion, "The campaign's goal: an event of the app, counted after the push.")

    /// The shape of the whole campaign file.
    package static let shape = ObjectShape(
        "campaign", "The audience, template, time and limits of a push.", oneOf: ["audience", "audience_sql"],
        [
            name.shape, topic.shape, pushType.shape, priority.shape, ownClass.shape, template.shape,
            audience.shape, audienceSQL.shape, dedupe.shape,
            variables.shape,
            schedule.shape, trigger.shape, expiresAfter.shape, collapse.shape, pace.shape, guards.shape,
            onUnknown.shape, retry.shape,
            holdout.shape, variants.shape, decide.shape, stages.shape, correction.shape, feedback.shape,
            conversion.shape,
        ])

    enum Feedback {
        static let arrivals = Key(
            "arrivals", .percent(0...100),
            "The share of the devices that report the arrival. Their app needs a notification service extension, and the "
                + "template needs mutable_content: true.")
        static let shape = ObjectShape("feedback", "The reports that the app sends.", [arrivals.shape])
    }

    enum Conversion {
        static let event = Key(
            "event", ValueDecoder<String>.name, required: true, "The name of the event, such as played_episode.")
        static let within = Key(
            "within", .duration(.seconds(1) ... .seconds(30 * 86_400), example: "24h"),
            "The time after the push within which the event counts (default: 24h).")
        static let shape = ObjectShape(
            "conversion", "The goal of the campaign.", [event.shape, within.shape])
    }

    enum Pace {
        static let rate = Key(
            "rate", .pushesPerSecond, required: true, "The maximum number of pushes per second or minute.")
        static let ramp = Key(
            "ramp", .duration(.zero ... .seconds(86_400), example: "2m"), "The time to reach the rate.")
        static let shape = ObjectShape("pace", "The rate limit of a run.", [rate.shape, ramp.shape])
    }

    enum Guards {
        static let maxReach = Key(
            "max_reach", .integer(1...Int.max), "Refuse a run that reaches more devices than this.")
        static let minReach = Key(
            "min_reach", .integer(0...Int.max), "Refuse a run that reaches fewer devices than this.")
        static let maxGrowth = Key(
            "max_growth", .percent(0...100_000), "Refuse a run that exceeds the last run's reach by more than this.")
        static let shape = ObjectShape(
            "guards", "Limits beyond which a run is refused.", [maxReach.shape, minReach.shape, maxGrowth.shape])
    }

    enum Retry {
        static let maxAttempts = Key("max_attempts", .integer(1...20), "Attempts per device, the first included.")
        static let shape = ObjectShape("retry", "The number of attempts.", [maxAttempts.shape])
    }

    enum Variant {
        static let weight = Key(
            "weight", .integer(1...1_000_000), required: true, "The variant's weight relative to the others.")
        static let template = Key(
            "template", ValueDecoder<String>.name, required: true, "The template of this variant.")
        static let shape = ObjectShape("variant", "One of several templates.", [weight.shape, template.shape])
    }

    enum Decide {
        static let by = Key(
            "by", ValueDecoder<VariantRule.Measure>.word,
            "opens (default): the variant with the higher share of opens wins. conversion: the variant whose "
                + "devices reach the campaign's goal more often wins.")
        static let after = Key(
            "after", .duration(.seconds(60) ... .seconds(7 * 86_400), example: "30m"), required: true,
            "The time between the last response of APNs and the comparison.")
        static let share = Key(
            "share", .percent(0...100), required: true, "The share of the audience split between the variants.")
        static let undecided = Key(
            "undecided", ValueDecoder<VariantRule.Undecided>.word,
            "If the difference may be chance. wait (default): a person chooses. first: the rest gets the first one.")
        static let shape = ObjectShape(
            "decide", "The comparison that chooses the variant for the rest.",
            [by.shape, after.shape, share.shape, undecided.shape])
    }

    enum Stage {
        static let seeds = Key(
            "seeds", .audience,
            "At most \(Model.Stage.seedsMax) devices, as an expression without everyone; they get the push first, "
                + "whether in the audience or not.")
        static let share = Key("share", .percent(0...100), "A sample of the audience of this size.")
        static let rest = Key("rest", .yes, "true: all devices that are in no earlier stage; for the last stage.")
        static let hold = Key(
            "hold", .duration(.zero ... .seconds(7 * 86_400), example: "15m"),
            "The time the next stage waits after the last response, so that people can check.")
        static let tolerate = Key(
            "tolerate", .percent(0...100), "The tolerated share of rejections (default: 5%).")
        static let opensAtLeast = Key(
            "opens_at_least", .opensAtLeast,
            "At the hold's end, the run pauses if the share of opens is below this part of the usual share: the median "
                + "of the campaign's last runs with feedback at the same age, else of the app's other campaigns.")
        static let needs = Key("needs", .approval, "approval: the stage begins when a person has approved it.")
        static let shape = ObjectShape(
            "stage", "A part of a run.",
            [
                seeds.shape, share.shape, rest.shape, hold.shape, tolerate.shape, opensAtLeast.shape, needs.shape,
            ])
    }

    enum Schedule {
        static let cron = Key("cron", .cron, "Five fields, or a word such as @daily or @weekly.")
        static let at = Key("at", .localTime, "A local date and time.")
        static let zone = Key("zone", .zone, "An IANA time zone, or recipient for each device's own time zone.")
        static let unknownZone = Key(
            "unknown_zone", .unknownZone, "The zone of devices without one, or drop. Required with zone: recipient.")
        static let missedZone = Key(
            "missed_zone", ValueDecoder<Model.Schedule.MissedZone>.word,
            "What happens to devices whose local time has passed when the run starts (default: next_day).")
        static let lateByMax = Key(
            "late_by_max", .duration(.zero ... .seconds(30 * 86_400), example: "2h"),
            "An occurrence found later than this is not sent, and a run unfinished for longer waits for a person; "
                + "also for a campaign that has neither cron nor at (default: 1h).")
        static let quietHours = Key(
            "quiet_hours", .quietHours,
            "Hours without pushes, by each device's own clock, also for a campaign that has neither cron nor at.")
        static let bestHour = Key(
            "best_hour", .bestHour,
            "Each device gets the push at the hour at which it opens the app most, no earlier than cron or at. Needs "
                + "zone: recipient and feedback.")
        static let shape = ObjectShape(
            "schedule", "When the campaign starts automatically.",
            [
                cron.shape, at.shape, zone.shape, unknownZone.shape, missedZone.shape, lateByMax.shape,
                quietHours.shape, bestHour.shape,
            ])
    }

    enum BestHour {
        static let until = Key(
            "until", .minuteOfDay, required: true,
            "The end of the allowed hours, a full hour in local time. The last pushes start an hour before it.")
        static let shape = ObjectShape("best_hour", "The allowed hours for each device's push.", [until.shape])
    }

    enum Trigger {
        static let feed = Key("feed", .webAddress, required: true, "The address of an RSS or Atom feed.")
        static let every = Key(
            "every", .duration(.seconds(60) ... .seconds(7 * 86_400), example: "5m"),
            "The time from one poll to the next (default: 15m).")
        static let variables = Key(
            "variables", .feedVariables, "The item's field for each variable, for example title: item.title.")
        static let lateByMax = Key(
            "late_by_max", .duration(.seconds(60) ... .seconds(30 * 86_400), example: "6h"),
            "The maximum age of an item. An older item is not sent, and its run, if unfinished for longer, waits for a "
                + "person (default: 24h).")
        static let newMax = Key(
            "max_new", .integer(1...100),
            "The maximum number of new items per poll; if there are more, none is sent (default: 3).")
        static let shape = ObjectShape(
            "trigger", "A feed whose new items start the campaign.",
            [feed.shape, every.shape, variables.shape, lateByMax.shape, newMax.shape])
    }

    enum QuietHours {
        static let from = Key("from", .minuteOfDay, required: true, "The first quiet minute, in local time.")
        static let to = Key("to", .minuteOfDay, required: true, "The first minute after the quiet hours.")
        static let policy = Key(
            "policy", ValueDecoder<Model.Schedule.QuietHours.Policy>.word, "defer (send later) or drop.")
        static let shape = ObjectShape(
            "quiet_hours", "Local hours without pushes.", [from.shape, to.shape, policy.shape])
    }
}
