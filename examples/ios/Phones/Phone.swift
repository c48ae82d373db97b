import Foundation
import Heddle

/// A row of the app's table: somebody whom the owner of the phone writes with.
struct Contact: Sendable {
    let name: String
    let sent, received: Int
    let nights: Int // messages between 22 and 6 o'clock
    let answersSoon: Bool? // nil: not known yet
}

/// Two contacts who are in one group.
struct Tie: Sendable {
    let a, b: String
}

/// Makes the graph of the rows. Counts are scaled as at all members: by their logarithm.
func graph(_ contacts: [Contact], _ ties: [Tie]) throws -> Graph {
    let g = try Graph(features: 3, classes: 2)
    for c in contacts {
        let row = [c.sent, c.received, c.nights].map { Float(log1p(Double($0))) }
        try g.add(c.name, row, label: c.answersSoon.map { $0 ? 1 : 0 })
    }
    for t in ties {
        try g.connect(t.a, t.b)
    }
    return g
}

/// The phone of this app, with the plan that the app was built with. A phone that no plan lists needs no key of before: after
/// a transfer it is another one. An app whose phones are listed shows the new ID to the administrators instead.
func openPhone() throws -> Device {
    let directory = URL.applicationSupportDirectory.appending(path: "heddle")
    let plan = try Bundle.main.url(forResource: "plan", withExtension: "yaml").map { try Data(contentsOf: $0) }
    do {
        return try Device(directory: directory, plan: plan, store: KeychainStore())
    } catch HeddleError.keyLost {
        var settings = Device.Settings()
        settings.newKey = true
        return try Device(directory: directory, plan: plan, store: KeychainStore(), settings: settings)
    }
}

extension Device {
    /// The probability that each contact answers soon.
    func answersSoon(_ contacts: [Contact], _ ties: [Tie]) async throws -> [String: Double] {
        let all = try await predict(graph(contacts, ties))
        return try Dictionary(uniqueKeysWithValues: contacts.enumerated().map { node, c in (c.name, try all.probability(node, 1)) })
    }
}
