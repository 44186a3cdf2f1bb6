package import Model

/// Checks that need to know which kind of push a template is for.
package enum TemplateRules {
    /// What a push of this type may and must hold.
    package static func check(_ source: TemplateSource, for pushType: PushType) -> [Diagnostic] {
        let findings = Findings(path: source.path)
        switch pushType {
        case .background: checkBackground(source, findings)
        case .alert: checkAlert(source, findings)
        // Their content is Apple's to define and not written by templates yet; the campaign file refuses them.
        case .location, .voip, .complication, .fileprovider, .mdm, .liveactivity, .pushtotalk, .widgets, .controls:
            break
        }
        return findings.diagnostics
    }

    /// `apns-protocol.md` section 4: the `aps` of a background push is `{"content-available": 1}` and nothing else.
    private static func checkBackground(_ source: TemplateSource, _ findings: Findings) {
        for key in TemplateKeys.visible {
            guard let place = source.places[key] else { continue }
            findings.error(
                "\(quoted(key)) in the template of a background push",
                "remove it, only custom is allowed: Apple wants aps to hold nothing but content-available, or the push "
                    + "is not silent; use push_type alert to show something",
                at: place)
        }
    }

    private static func checkAlert(_ source: TemplateSource, _ findings: Findings) {
        let template = source.template
        guard template.alert == nil, template.sound == nil, template.badge == nil else { return }
        findings.error(
            "template \(quoted(template.name)) shows nothing, and its push_type is alert",
            "add alert, sound or badge, or use push_type background",
            at: source.places["template"] ?? Place())
    }
}
