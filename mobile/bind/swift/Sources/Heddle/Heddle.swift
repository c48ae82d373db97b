/// Heddle for apps in Swift: the classes that gobind makes of Go's package mobile, with async, enums and errors.
import Foundation
import HeddleCore

/// Guards the device's key. `KeychainStore` is one.
public protocol Store: AnyObject {
    /// Returns what `put` kept, nil if that is nothing or can never be read again. Throws if it cannot be read now.
    func get(_ key: String) throws -> Data?
    func put(_ key: String, _ value: Data) throws
}

public enum HeddleError: Error {
    /// The key of the device whose runs are in the directory is lost: see `Device.Settings.newKey`.
    case keyLost(String)
    /// A run failed. The kind is `input` for a fault of plan or graph, `peer` for a fault of another member, else `run`.
    case run(kind: String, String)
}

/// A small graph in memory. Each node has numbers, scaled as at all members, and a class or none.
public final class Graph: @unchecked Sendable {
    fileprivate let core: MobileGraph

    public init(features: Int, classes: Int) throws {
        var fault: NSError?
        guard let core = MobileNewGraph(features, classes, &fault) else { throw fault! }
        self.core = core
    }

    public var nodes: Int { core.nodes() }

    /// Adds a node and returns its number. The use is train, val, test or none (nil = six, two and two in ten).
    @discardableResult
    public func add(_ name: String, _ values: [Float], label: Int? = nil, use: String? = nil) throws -> Int {
        var node = 0
        try core.addNode(name, ret0_: &node)
        let row = values.map { $0.bitPattern.littleEndian }
        try core.setFeatures(node, row: row.withUnsafeBytes { Data($0) })
        if let label { try core.setLabel(node, class: label) }
        if let use { try core.setUse(node, use: use) }
        return node
    }

    /// The number of a node, nil if there is none of that name.
    public func node(_ name: String) -> Int? {
        let node = core.node(name)
        return node < 0 ? nil : node
    }

    /// Connects two nodes, in both directions.
    public func connect(_ a: String, _ b: String) throws { try core.addEdge(core.node(a), b: core.node(b)) }
}

public final class Predictions: @unchecked Sendable {
    private let core: MobilePredictions

    fileprivate init(_ core: MobilePredictions) { self.core = core }

    public var nodes: Int { core.nodes() }

    public func classOf(_ node: Int) throws -> Int {
        var out = 0
        try core.classOf(node, ret0_: &out)
        return out
    }

    public func probability(_ node: Int, _ label: Int) throws -> Double {
        var out = 0.0
        try core.probability(node, class: label, ret0_: &out)
        return out
    }
}

/// One member of a federation.
public final class Device: @unchecked Sendable {
    private let core: MobileDevice

    /// Opens the device whose runs are in the directory, and makes it at the first time. Without a plan it only predicts.
    public init(directory: URL, plan: Data?, store: any Store, settings: Settings = Settings()) throws {
        let config = MobileNewConfig(directory.path)!
        if let plan { config.setPlan(plan) }
        if let evidence = settings.evidence { config.setEvidence(evidence) }
        if let roster = settings.roster { config.setRoster(roster, fingerprint: settings.fingerprint) }
        config.setWindow(settings.window)
        config.setWait(settings.wait)
        config.setListen(settings.listen)
        config.setNewKey(settings.newKey)
        var fault: NSError?
        guard let core = MobileNewDevice(config, Keys(store), &fault) else {
            let text = fault!.localizedDescription
            throw text.hasPrefix(MobileKeyLost) ? HeddleError.keyLost(text) : fault!
        }
        self.core = core
    }

    /// The ID that a plan lists.
    public var id: String { core.id_() }
    public var state: State { State(rawValue: core.state())! }

    /// Reports what the phone is doing, for the plan's `phone_when`.
    public func allow(charging: Bool, unmetered: Bool, idle: Bool) { core.allow(charging, unmetered: unmetered, idle: idle) }

    /// Trains until the model is final or the window is over, and returns how far it came: `done` or `paused`. The next call
    /// goes on, also in another process, and may then leave out the graph of a phone that the plan lists. A task that is
    /// cancelled pauses the device within a second. `show` is called on a thread of the library.
    @discardableResult
    public func train(_ graph: Graph? = nil, show: @escaping @Sendable (Progress) -> Void = { _ in }) async throws -> Progress {
        if let graph { try core.setGraph(graph.core) }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { end in
                do { try core.start(Watch(show, end)) } catch { end.resume(throwing: error) }
                if Task.isCancelled { pause() }
            }
        } onCancel: {
            pause()
        }
    }

    /// Pauses within a second; `train` returns.
    public func pause() { core.pause() }

    /// Ends the device for good.
    public func stop() { core.stop() }

    /// The last model's predictions for the nodes of a graph, without any network.
    public func predict(_ graph: Graph) async throws -> Predictions { Predictions(try core.predict(graph.core)) }

    /// The last run's predictions for the device's own nodes, with the rows of neighbours at other members.
    public func own() async throws -> Predictions { Predictions(try core.own()) }
}

extension Device {
    public enum State: String, Sendable {
        case idle, waiting, connecting, training, paused, failed, done, stopped
    }

    /// What a device has done so far. Loss and metric are over the validation labels of all members, or NaN.
    public struct Progress: Sendable {
        public var state = State.idle
        public var detail = ""
        public var round = 0, rounds = 0
        public var loss = Double.nan, metric = Double.nan
        public var sentBytes: Int64 = 0
        public init() {}
    }

    /// How a device takes part. Times are in seconds.
    public struct Settings: Sendable {
        public var evidence: Data? // an invitation, or the verdict of App Attest, as the sites ask
        public var roster: Data?, fingerprint = "" // the federation's roster, and the fingerprint of the first one
        public var window = 9 * 60 // after how long the device pauses by itself (0 = never)
        public var wait = 5 * 60 // how long it waits for other members
        public var listen = "" // a multiaddress to listen on (empty = it only dials out)
        public var newKey = false // replaces a key that is lost; the device has another ID then
        public init() {}
    }
}

private final class Keys: NSObject, MobileStoreProtocol {
    private let store: any Store

    init(_ store: any Store) { self.store = store }
    func get(_ key: String?) throws -> Data { try store.get(key ?? "") ?? Data() }
    func put(_ key: String?, value: Data?) throws { try store.put(key ?? "", value ?? Data()) }
}

/// Collects what the library reports, which calls one method at a time.
private final class Watch: NSObject, MobileListenerProtocol, @unchecked Sendable {
    private let show: @Sendable (Device.Progress) -> Void
    private var now = Device.Progress()
    private var fault = HeddleError.run(kind: "run", "")
    private var end: CheckedContinuation<Device.Progress, any Error>?

    init(_ show: @escaping @Sendable (Device.Progress) -> Void, _ end: CheckedContinuation<Device.Progress, any Error>) {
        (self.show, self.end) = (show, end)
    }

    func onState(_ state: String?, detail: String?) throws {
        (now.state, now.detail) = (Device.State(rawValue: state ?? "") ?? .idle, detail ?? "")
        show(now)
        switch now.state {
        case .done, .paused, .stopped: end?.resume(returning: now)
        case .failed: end?.resume(throwing: fault)
        default: return
        }
        end = nil // it is resumed once
    }

    func onRound(_ done: Int, total: Int, loss: Double, metric: Double) throws {
        (now.round, now.rounds, now.loss, now.metric) = (done, total, loss, metric)
        show(now)
    }

    func onBytes(_ sent: Int64) throws {
        now.sentBytes = sent
        show(now)
    }

    func onError(_ kind: String?, text: String?) throws { fault = .run(kind: kind ?? "run", text ?? "") }
}
