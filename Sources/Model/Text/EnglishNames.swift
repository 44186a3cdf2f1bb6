/// The English names of languages and countries.
///
/// The names are those of CLDR 46. Foundation has them too, but not in a program that is linked statically.
package enum EnglishNames {
    /// Returns the name of a language such as `German` or `Portuguese (Brazil)`; the tag itself if the language is
    /// unknown.
    package static func language(_ tag: LocaleTag) -> String {
        let parts = tag.description.split(separator: "-").map(String.init)
        guard let first = parts.first, let name = languages[first] else { return tag.description }
        let more = parts.dropFirst().map { scripts[$0] ?? countries[$0.uppercased()] ?? $0 }
        return more.isEmpty ? name : "\(name) (\(more.joined(separator: ", ")))"
    }

    /// Returns the name of a country such as `Germany`; the code itself if the country is unknown.
    package static func country(_ code: String) -> String { countries[code.uppercased()] ?? code }

    /// Returns the code of a language by its English name, such as `de` for `German`; `nil` if there is none.
    package static func languageCode(named name: String) -> String? { code(named: name, in: languages) }

    /// Returns the code of a country by its English name, such as `DE` for `Germany`; `nil` if there is none.
    package static func countryCode(named name: String) -> String? { code(named: name, in: countries) }

    private static func code(named name: String, in names: [String: String]) -> String? {
        let name = name.lowercased()
        return names.first { $0.value.lowercased() == name }?.key
    }

    /// Returns the names by code of a text such as `de German; fr French;`.
    private static func table(_ text: String) -> [String: String] {
        var names: [String: String] = [:]
        for entry in text.split(separator: ";") {
            let parts = entry.split(separator: " ", maxSplits: 1).map(String.init)
            if parts.count == 2 { names[parts[0]] = parts[1] }
        }
        return names
    }

    private static let scripts = [
        "Hans": "Simplified", "Hant": "Traditional", "Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic",
    ]

    /// The languages by their ISO 639 codes.
    private static let languages = table(
        """
        aa Afar; ab Abkhazian; ae Avestan; af Afrikaans; ak Akan; am Amharic; an Aragonese; ar Arabic; as Assamese; \
        ast Asturian; av Avaric; ay Aymara; az Azerbaijani; ba Bashkir; be Belarusian; bg Bulgarian; bho Bhojpuri; \
        bi Bislama; bm Bambara; bn Bangla; bo Tibetan; br Breton; brx Bodo; bs Bosnian; ca Catalan; ce Chechen; \
        ceb Cebuano; cgg Chiga; ch Chamorro; chr Cherokee; ckb Sorani Kurdish; co Corsican; cr Cree; cs Czech; \
        cu Church Slavic; cv Chuvash; cy Welsh; da Danish; de German; doi Dogri; dsb Lower Sorbian; dv Dhivehi; \
        dz Dzongkha; ee Ewe; el Greek; en English; eo Esperanto; es Spanish; et Estonian; eu Basque; fa Persian; \
        ff Fula; fi Finnish; fil Filipino; fj Fijian; fo Faroese; fr French; fur Friulian; fy Western Frisian; \
        ga Irish; gd Scottish Gaelic; gl Galician; gn Guarani; gsw Swiss German; gu Gujarati; gv Manx; ha Hausa; \
        haw Hawaiian; he Hebrew; hi Hindi; hmn Hmong; ho Hiri Motu; hr Croatian; hsb Upper Sorbian; \
        ht Haitian Creole; hu Hungarian; hy Armenian; hz Herero; ia Interlingua; id Indonesian; ie Interlingue; \
        ig Igbo; ii Liangshan Yi; ik Inupiaq; io Ido; is Icelandic; it Italian; iu Inuktitut; ja Japanese; \
        jv Javanese; ka Georgian; kab Kabyle; kg Kongo; ki Kikuyu; kj Kuanyama; kk Kazakh; kl Kalaallisut; km Khmer; \
        kn Kannada; ko Korean; kok Konkani; kr Kanuri; ks Kashmiri; ku Kurdish; kv Komi; kw Cornish; ky Kyrgyz; \
        la Latin; lb Luxembourgish; lg Ganda; li Limburgish; lij Ligurian; ln Lingala; lo Lao; lt Lithuanian; \
        lu Luba-Katanga; lv Latvian; mai Maithili; mg Malagasy; mh Marshallese; mi Māori; mk Macedonian; \
        ml Malayalam; mn Mongolian; mni Manipuri; mr Marathi; ms Malay; mt Maltese; my Burmese; na Nauru; \
        nb Norwegian Bokmål; nd North Ndebele; nds Low German; ne Nepali; ng Ndonga; nl Dutch; nn Norwegian Nynorsk; \
        no Norwegian; nr South Ndebele; nso Northern Sotho; nv Navajo; ny Nyanja; oc Occitan; oj Ojibwa; om Oromo; \
        or Odia; os Ossetic; pa Punjabi; pi Pali; pl Polish; ps Pashto; pt Portuguese; qu Quechua; rm Romansh; \
        rn Rundi; ro Romanian; ru Russian; rw Kinyarwanda; sa Sanskrit; sat Santali; sc Sardinian; scn Sicilian; \
        sd Sindhi; se North Sámi; sg Sango; si Sinhala; sk Slovak; sl Slovenian; sm Samoan; sn Shona; so Somali; \
        sq Albanian; sr Serbian; ss Swati; st Southern Sotho; su Sundanese; sv Swedish; sw Swahili; szl Silesian; \
        ta Tamil; te Telugu; tg Tajik; th Thai; ti Tigrinya; tk Turkmen; tn Tswana; to Tongan; tr Turkish; \
        ts Tsonga; tt Tatar; tw Twi; ty Tahitian; tzm Central Atlas Tamazight; ug Uyghur; uk Ukrainian; ur Urdu; \
        uz Uzbek; ve Venda; vec Venetian; vi Vietnamese; vo Volapük; wa Walloon; wo Wolof; xh Xhosa; yi Yiddish; \
        yo Yoruba; yue Cantonese; za Zhuang; zgh Standard Moroccan Tamazight; zh Chinese; zu Zulu;
        """)

    /// The countries by their ISO 3166 codes.
    private static let countries = table(
        """
        AC Ascension Island; AD Andorra; AE United Arab Emirates; AF Afghanistan; AG Antigua & Barbuda; AI Anguilla; \
        AL Albania; AM Armenia; AO Angola; AQ Antarctica; AR Argentina; AS American Samoa; AT Austria; AU Australia; \
        AW Aruba; AX Åland Islands; AZ Azerbaijan; BA Bosnia & Herzegovina; BB Barbados; BD Bangladesh; BE Belgium; \
        BF Burkina Faso; BG Bulgaria; BH Bahrain; BI Burundi; BJ Benin; BL St. Barthélemy; BM Bermuda; BN Brunei; \
        BO Bolivia; BQ Caribbean Netherlands; BR Brazil; BS Bahamas; BT Bhutan; BV Bouvet Island; BW Botswana; \
        BY Belarus; BZ Belize; CA Canada; CC Cocos (Keeling) Islands; CD Congo - Kinshasa; \
        CF Central African Republic; CG Congo - Brazzaville; CH Switzerland; CI Côte d’Ivoire; CK Cook Islands; \
        CL Chile; CM Cameroon; CN China mainland; CO Colombia; CP Clipperton Island; CQ Sark; CR Costa Rica; \
        CU Cuba; CV Cape Verde; CW Curaçao; CX Christmas Island; CY Cyprus; CZ Czechia; DE Germany; DG Diego Garcia; \
        DJ Djibouti; DK Denmark; DM Dominica; DO Dominican Republic; DZ Algeria; EA Ceuta & Melilla; EC Ecuador; \
        EE Estonia; EG Egypt; EH Western Sahara; ER Eritrea; ES Spain; ET Ethiopia; EU European Union; EZ Eurozone; \
        FI Finland; FJ Fiji; FK Falkland Islands; FM Micronesia; FO Faroe Islands; FR France; GA Gabon; \
        GB United Kingdom; GD Grenada; GE Georgia; GF French Guiana; GG Guernsey; GH Ghana; GI Gibraltar; \
        GL Greenland; GM Gambia; GN Guinea; GP Guadeloupe; GQ Equatorial Guinea; GR Greece; \
        GS So. Georgia & So. Sandwich Isl.; GT Guatemala; GU Guam; GW Guinea-Bissau; GY Guyana; HK Hong Kong; \
        HM Heard & McDonald Islands; HN Honduras; HR Croatia; HT Haiti; HU Hungary; IC Canary Islands; ID Indonesia; \
        IE Ireland; IL Israel; IM Isle of Man; IN India; IO Chagos Archipelago; IQ Iraq; IR Iran; IS Iceland; \
        IT Italy; JE Jersey; JM Jamaica; JO Jordan; JP Japan; KE Kenya; KG Kyrgyzstan; KH Cambodia; KI Kiribati; \
        KM Comoros; KN St. Kitts & Nevis; KP North Korea; KR South Korea; KW Kuwait; KY Cayman Islands; \
        KZ Kazakhstan; LA Laos; LB Lebanon; LC St. Lucia; LI Liechtenstein; LK Sri Lanka; LR Liberia; LS Lesotho; \
        LT Lithuania; LU Luxembourg; LV Latvia; LY Libya; MA Morocco; MC Monaco; MD Moldova; ME Montenegro; \
        MF St. Martin; MG Madagascar; MH Marshall Islands; MK North Macedonia; ML Mali; MM Myanmar (Burma); \
        MN Mongolia; MO Macao; MP Northern Mariana Islands; MQ Martinique; MR Mauritania; MS Montserrat; MT Malta; \
        MU Mauritius; MV Maldives; MW Malawi; MX Mexico; MY Malaysia; MZ Mozambique; NA Namibia; NC New Caledonia; \
        NE Niger; NF Norfolk Island; NG Nigeria; NI Nicaragua; NL Netherlands; NO Norway; NP Nepal; NR Nauru; \
        NU Niue; NZ New Zealand; OM Oman; PA Panama; PE Peru; PF French Polynesia; PG Papua New Guinea; \
        PH Philippines; PK Pakistan; PL Poland; PM St. Pierre & Miquelon; PN Pitcairn Islands; PR Puerto Rico; \
        PS Palestinian Territories; PT Portugal; PW Palau; PY Paraguay; QA Qatar; QO Outlying Oceania; RE Réunion; \
        RO Romania; RS Serbia; RU Russia; RW Rwanda; SA Saudi Arabia; SB Solomon Islands; SC Seychelles; SD Sudan; \
        SE Sweden; SG Singapore; SH St. Helena; SI Slovenia; SJ Svalbard & Jan Mayen; SK Slovakia; SL Sierra Leone; \
        SM San Marino; SN Senegal; SO Somalia; SR Suriname; SS South Sudan; ST São Tomé & Príncipe; SV El Salvador; \
        SX Sint Maarten; SY Syria; SZ Eswatini; TA Tristan da Cunha; TC Turks & Caicos Islands; TD Chad; \
        TF French Southern Territories; TG Togo; TH Thailand; TJ Tajikistan; TK Tokelau; TL Timor-Leste; \
        TM Turkmenistan; TN Tunisia; TO Tonga; TR Türkiye; TT Trinidad & Tobago; TV Tuvalu; TW Taiwan; TZ Tanzania; \
        UA Ukraine; UG Uganda; UM U.S. Outlying Islands; UN United Nations; US United States; UY Uruguay; \
        UZ Uzbekistan; VA Vatican City; VC St. Vincent & Grenadines; VE Venezuela; VG British Virgin Islands; \
        VI U.S. Virgin Islands; VN Vietnam; VU Vanuatu; WF Wallis & Futuna; WS Samoa; XK Kosovo; YE Yemen; \
        YT Mayotte; ZA South Africa; ZM Zambia; ZW Zimbabwe;
        """)
}
