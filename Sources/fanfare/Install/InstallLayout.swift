import Foundation

/// Where an installation has its files.
struct InstallLayout {
    /// `/usr/local`, without a slash at the end.
    var prefix: String

    var binary: String { "\(prefix)/bin/fanfare" }
    var units: String { "\(prefix)/lib/systemd/system" }
    var sysusers: String { "\(prefix)/lib/sysusers.d" }
    var examples: String { "\(prefix)/share/fanfare" }
    /// What the prefixes of a system share, and others have for themselves.
    var settings: String { ["/usr", "/usr/local"].contains(prefix) ? "/etc/fanfare" : "\(prefix)/etc/fanfare" }

    struct File {
        var path: String
        var text: String
        /// A file that belongs to the people of the machine once it is there.
        var isTheirs = false
    }

    var files: [File] {
        [
            File(path: "\(units)/fanfare.service", text: located(PackageResources.fanfare_service)),
            File(path: "\(units)/fanfare-run@.service", text: located(PackageResources.fanfare_run_service)),
            File(path: "\(units)/fanfare-run@.timer", text: located(PackageResources.fanfare_run_timer)),
            File(path: "\(sysusers)/fanfare.conf", text: located(PackageResources.fanfare_sysusers)),
            File(path: "\(settings)/fanfare.yaml", text: located(PackageResources.configuration_yaml), isTheirs: true),
        ]
            + ExampleFiles.all.map { File(path: "\(examples)/\($0.name)", text: $0.text) }
    }

    /// Made where they are missing. Campaigns there are obeyed by the daemon: the examples stay out of it.
    var folders: [(path: String, mode: Int)] {
        [
            (settings, 0o755), ("\(settings)/campaigns", 0o755), ("\(settings)/templates", 0o755),
            ("\(settings)/keys", 0o700),
        ]
    }

    /// A text of the repository, which speaks of `/usr`, with the paths of this installation.
    private func located(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
            .replacing("/usr/bin/fanfare", with: binary).replacing("/etc/fanfare", with: settings)
    }
}

/// The campaigns and templates that come with Fanfare.
enum ExampleFiles {
    static var all: [(name: String, text: String)] {
        [
            ("campaigns/new-podcast.yaml", PackageResources.campaign_new_podcast_yaml),
            ("campaigns/breaking-news.yaml", PackageResources.campaign_breaking_news_yaml),
            ("campaigns/refresh-episodes.yaml", PackageResources.campaign_refresh_episodes_yaml),
            ("templates/new-podcast.yaml", PackageResources.template_new_podcast_yaml),
            ("templates/breaking-news.yaml", PackageResources.template_breaking_news_yaml),
            ("templates/refresh-episodes.yaml", PackageResources.template_refresh_episodes_yaml),
        ].map { ($0, String(decoding: $1, as: UTF8.self)) }
    }
}
