extension WallTime {
    /// The time as a person says it: `Fri 4 Dec 18:00`.
    package var spoken: String {
        let (_, month, date) = day.date
        let time = description.split(separator: "T").last.map(String.init) ?? ""
        return "\(Self.weekdays[Int(day.weekday)]) \(date) \(Self.months[Int(month) - 1]) \(time)"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
