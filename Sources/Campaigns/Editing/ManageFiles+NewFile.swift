import CampaignFiles
import Foundation
import Model

/// The creation of files through the web.
extension ManageFiles {
    /// Throws ``FileRefusal`` if no file can have this name, or if a file already has it.
    package func requireNew(_ kind: Kind, _ name: String) throws {
        if let problem = FileName.problem(with: name) { throw FileRefusal.unsuitable(problem) }
        let path = newPath(kind, name)
        guard !isThere(kind, name), try AtomicFile.entry(at: path) == .nothing else {
            throw FileRefusal.taken(file: path)
        }
    }

    /// Returns the path that a new file of this name gets, such as `campaigns/summer.yaml`.
    package func pathOfNew(_ kind: Kind, _ name: String) -> String { newPath(kind, name) }

    /// Returns the text of a new template. It defines a valid notification.
    package func beginningOfTemplate(_ name: String) -> String {
        """
        # The texts of a notification, by language. {{title}} is a variable: the campaign names it, and a run gives \
        its value.
        # Put texts with {{...}} in quotes. Values may contain quotes, emoji and line breaks.

        template: "\(name)"
        default_locale: en                # for phones in a language that is not listed

        # A phone gets the nearest language. Each language uses the same {{variables}}.
        alert:
          en:
            title: "New for you"
            body: "{{title}} is out."
        #  de:
        #    title: "Neu für dich"
        #    body: "{{title}} ist da."

        sound: default

        # Other keys of a template:
        #
        # badge: +1                       # adds one to the number on the icon; "badge: 1" would set it to one
        # thread_id: "news"               # groups these pushes on the screen
        # interruption_level: active      # passive | active | time-sensitive | critical
        # custom: {link_url: "{{link_url}}"}    # the app's own keys

        """
    }

    /// Returns the text of a new campaign. The campaign reaches only devices with a tag, and at most 1000 of them,
    /// so that no mistake becomes a broadcast.
    ///
    /// - Parameters:
    ///   - topic: the app's topic.
    ///   - template: the template whose variables the campaign names.
    package func beginningOfCampaign(_ name: String, topic: String, template: String) -> String {
        let used = (try? path(.template, template)).flatMap { TemplateFile.load(path: $0).0?.template.variables } ?? []
        let variables =
            used.isEmpty
            ? ""
            : """

            # What {{name}} stands for in the template. A value here is the default; if empty, each run sets it.
            variables:
            \(used.sorted().map { "  \($0): \"\"\n" }.joined())
            """
        return """
            # The audience, time and limits of the campaign. Nothing is sent before a person has planned and started it.

            campaign: "\(name)"
            topic: "\(topic)"
            push_type: alert                  # something to read; "background" is for silent pushes
            template: "\(template)"

            # The audience. Conditions are joined by and / or / not and brackets:
            #   segment("podcast-fans") and locale in ("en", "de") and last_seen within 90 days
            audience: tag("testers")
            \(variables)
            expires_after: 4h                 # a phone that is off longer than this never gets it
            guards:
              min_reach: 1                    # an empty audience is a mistake: refuse the run
              max_reach: 1000                 # a much larger one is a mistake, too: raise this when you know the number

            # Other keys of a campaign:
            #
            # schedule:                       # starts the campaign; default: started by hand
            #   cron: "0 9 * * MON-FRI"       # or at: 2026-12-01T09:00
            #   zone: recipient               # 9 a.m. by each phone's clock; or a zone such as Europe/Berlin
            #   unknown_zone: Europe/Berlin   # a phone whose zone is not known; or drop
            # pace: {rate: 5000/s}            # no faster, so that the app's servers keep up
            # holdout: 2%                     # this share gets nothing, always the same devices, for comparison

            """
    }
}
