import Model

extension ValueKind where Value == Audience {
    static var audience: ValueKind {
        let shape = ValueShape.text(
            words: "an audience expression", example: "segment(\"fans\") and locale in (\"de\")",
            form: .pattern(#"\S"#))
        return ValueKind(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            let (expression, problems) = AudienceParser.parse(text)
            for problem in problems {
                field.findings.error(problem.what, problem.advice, at: field.place(ofScalar: problem.offset))
            }
            return expression.map { Audience(source: text, expression: $0) }
        }
    }
}
