extension Int {
    /// With a separator between thousands: `1,234,567`.
    var grouped: String {
        let digits = String(magnitude)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += "," }
            text.append(digit)
        }
        return self < 0 ? "-" + text : text
    }

    /// The share of a whole in percent with one decimal; empty when there is no whole.
    func share(of whole: Int) -> String {
        guard whole > 0 else { return "" }
        let tenths = (Double(self) * 1000 / Double(whole)).rounded()
        return "\(Int(tenths) / 10).\(Int(tenths) % 10) %"
    }
}

extension String {
    func padded(to width: Int) -> String {
        count >= width ? self : self + String(repeating: " ", count: width - count)
    }

    func rightAligned(to width: Int) -> String {
        count >= width ? self : String(repeating: " ", count: width - count) + self
    }
}
