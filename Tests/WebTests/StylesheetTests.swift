import Foundation
import Testing
@testable import Web

/// The stylesheet's promises, computed from the file.
struct StylesheetTests {
    private static let states = ["accepted", "retried", "rejected", "unknown", "suppressed", "leased", "pending"]

    /// The colours by name: of light, of dark, of paper.
    private static func palettes() -> [[String: Colour]] {
        Asset.style.text.matches(of: /:root \{([^}]+)\}/).map { block in
            Dictionary(
                block.1.matches(of: /--([a-z-]+): #([0-9a-f]{6})/).map { (String($0.1), Colour(String($0.2))) }
            ) { $1 }
        }
    }

    @Test func `there are colours for light, dark and print`() {
        let palettes = Self.palettes()
        #expect(palettes.count == 3)
        #expect(Set(palettes.map { Set($0.keys) }).count <= 2)
        #expect(Set(palettes[0].keys) == Set(palettes[1].keys))
        for state in Self.states { #expect(palettes.allSatisfy { $0[state] != nil }, "\(state)") }
    }

    @Test func `text has a contrast of at least 4.5 on whatever it stands on`() throws {
        for palette in Self.palettes() {
            let grounds = try [#require(palette["paper"]), #require(palette["panel"])]
            let texts = palette.filter { $0.key.hasPrefix("text") && $0.key != "text-on-accent" }
            #expect(texts.count == 5)
            for (name, text) in texts {
                for ground in grounds {
                    #expect(text.contrast(to: ground) >= 4.5, "\(name): \(text.contrast(to: ground))")
                }
            }
            if let onAccent = palette["text-on-accent"], let accent = palette["accent"] {
                #expect(onAccent.contrast(to: accent) >= 4.5)
            }
        }
    }

    @Test func `a filled state stands out from the panel, and pending has an outline`() throws {
        for palette in Self.palettes() {
            let grounds = try [#require(palette["paper"]), #require(palette["panel"])]
            for state in Self.states.dropLast() {
                for ground in grounds {
                    let contrast = try #require(palette[state]).contrast(to: ground)
                    #expect(contrast >= 3, "\(state): \(contrast)")
                }
            }
        }
        #expect(Asset.style.text.contains(".chart .fill.pending { fill: var(--panel); stroke: var(--text-soft) }"))
    }

    @Test func `no two states look alike to anybody, whichever cones they lack`() throws {
        for palette in Self.palettes() {
            for (index, one) in Self.states.enumerated() {
                for other in Self.states[..<index] {
                    let (first, second) = try (#require(palette[one]), #require(palette[other]))
                    for sight in Colour.sights {
                        let distance = first.distance(to: second, seenWith: sight)
                        #expect(distance >= 18, "\(one) and \(other): \(distance)")
                    }
                }
            }
        }
    }

    @Test func `it is small, asks for nothing from anywhere, and speaks of print, motion, focus and narrow screens`() {
        let text = Asset.style.text
        #expect(text.utf8.count <= 30_000)
        for word in ["url(", "@import", "http:", "https:", "expression("] { #expect(!text.contains(word), "\(word)") }
        for word in [
            "@media print", "prefers-reduced-motion", ":focus-visible", "prefers-color-scheme: dark",
            "max-width: 640px",
            "tabular-nums",
        ] { #expect(text.contains(word), "\(word)") }
        #expect(text.count { $0 == "{" } == text.count { $0 == "}" })
    }

    @Test func `these tests know colours that are hard to read or to tell apart`() {
        #expect(abs(Colour("000000").contrast(to: Colour("ffffff")) - 21) < 0.01)
        #expect(Colour("999999").contrast(to: Colour("ffffff")) < 4.5)
        // A red and a green that those without the cones for green do not tell apart.
        let (red, green) = (Colour("b06a2c"), Colour("7d8030"))
        #expect(red.distance(to: green, seenWith: Colour.sights[0]) > 30)
        #expect(red.distance(to: green, seenWith: Colour.sights[2]) < 18)
    }
}

/// A colour as light of three kinds.
struct Colour {
    /// Everybody's sight, and without the cones for red, green and blue: Machado, Oliveira and Fernandes (2009).
    static let sights: [[[Double]]] = [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ]

    /// Linear, 0 to 1: red, green, blue.
    let light: [Double]

    init(_ hex: String) {
        let number = Int(hex, radix: 16) ?? 0
        light = [16, 8, 0].map { shift in
            let value = Double((number >> shift) & 0xFF) / 255
            return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
    }

    private static func luminance(_ light: [Double]) -> Double {
        0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
    }

    /// As WCAG 2 defines it: 1 to 21.
    func contrast(to other: Colour) -> Double {
        let (one, two) = (Self.luminance(light), Self.luminance(other.light))
        return (max(one, two) + 0.05) / (min(one, two) + 0.05)
    }

    /// In CIE Lab; 2 is just seen, 18 is seen at a glance.
    func distance(to other: Colour, seenWith sight: [[Double]]) -> Double {
        zip(lab(sight), other.lab(sight)).reduce(0) { $0 + pow($1.0 - $1.1, 2) }.squareRoot()
    }

    private static func root(_ value: Double) -> Double {
        let line: Double = 7.787 * value + 16.0 / 116
        return value > 0.008856 ? cbrt(value) : line
    }

    private func lab(_ sight: [[Double]]) -> [Double] {
        let seen: [Double] = sight.map { row in
            let sum: Double = zip(row, light).reduce(0) { $0 + $1.0 * $1.1 }
            return min(1, max(0, sum))
        }
        let x: Double = (0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.9505
        let z: Double = (0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.089
        let roots = [x, Self.luminance(seen), z].map(Self.root)
        return [116 * roots[1] - 16, 500 * (roots[0] - roots[1]), 200 * (roots[1] - roots[2])]
    }
}
