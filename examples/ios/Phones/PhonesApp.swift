import BackgroundTasks
import Heddle
import SwiftUI

private let task = "org.heddle.phones.train"

@main
struct PhonesApp: App {
    @Environment(\.scenePhase) private var phase
    @State private var model = Model()

    init() {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: task, using: nil) { [model] in
            model.work($0 as! BGProcessingTask)
        }
    }

    var body: some Scene {
        WindowGroup { Screen(model: model) }
            .onChange(of: phase) { if phase == .background { schedule() } }
    }
}

/// Asks for a window in which the phone is charging. The system chooses when, and ends it when it needs the phone.
private func schedule() {
    let request = BGProcessingTaskRequest(identifier: task)
    request.requiresExternalPower = true
    request.requiresNetworkConnectivity = true
    try? BGTaskScheduler.shared.submit(request)
}

@Observable
final class Model: @unchecked Sendable {
    @MainActor var progress = Device.Progress()
    @MainActor var fault: String?
    @MainActor var likely: [(String, Double)] = []

    /// One window of the background. The next one goes on where this one ended.
    func work(_ task: BGProcessingTask) {
        schedule()
        let training = Task {
            do {
                let device = try openPhone()
                defer { device.stop() }
                // The request asked for power. NWPathMonitor would report a metered network; here Wi-Fi is taken for granted.
                device.allow(charging: true, unmetered: true, idle: true)
                try await device.train(graph(Tables.contacts(), Tables.ties())) { now in
                    Task { @MainActor in self.progress = now }
                }
                task.setTaskCompleted(success: true)
            } catch {
                await MainActor.run { fault = "\(error)" }
                task.setTaskCompleted(success: false)
            }
        }
        task.expirationHandler = { training.cancel() }
    }

    @MainActor func predict() async {
        do {
            let all = try await openPhone().answersSoon(Tables.contacts(), Tables.ties())
            likely = all.sorted { $0.value > $1.value }.map { ($0.key, $0.value) }
        } catch {
            fault = "\(error)" // such as that there is no model yet
        }
    }
}

/// The app's own tables; a real app reads its database here.
enum Tables {
    static func contacts() -> [Contact] { [] }
    static func ties() -> [Tie] { [] }
}

struct Screen: View {
    let model: Model

    var body: some View {
        List {
            Section("Training") {
                Text(model.progress.state.rawValue)
                if model.progress.rounds > 0 {
                    ProgressView(value: Double(model.progress.round), total: Double(model.progress.rounds))
                    Text("\(model.progress.sentBytes / 1000) kB sent")
                }
                if let fault = model.fault { Text(fault).foregroundStyle(.red) }
            }
            Section("Who answers soon?") {
                Button("Predict") { Task { await model.predict() } }
                ForEach(model.likely.prefix(10), id: \.0) { Text("\($0.0): \(Int(100 * $0.1)) %") }
            }
        }
    }
}
