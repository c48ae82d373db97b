/** Heddle for apps in Kotlin: the classes that gobind makes of Go's package mobile, with coroutines and enums. */
package org.heddle

import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import kotlin.coroutines.cancellation.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import mobile.Config
import mobile.Listener
import mobile.Mobile

/** Guards the device's key. [SealedStore] is one. */
typealias Store = mobile.Store

/** The key of the device whose runs are in the directory is lost: see [Settings.newKey]. */
class KeyLostException(message: String) : Exception(message)

/** A run failed: [kind] is `input` for a fault of plan or graph, `peer` for a fault of another member, else `run`. */
class RunException(val kind: String, message: String) : Exception(message)

enum class State {
    IDLE, WAITING, CONNECTING, TRAINING, PAUSED, FAILED, DONE, STOPPED;

    internal companion object {
        fun of(name: String) = valueOf(name.uppercase())
    }
}

/** What a device has done so far. [loss] and [metric] are over the validation labels of all members, or NaN. */
data class Progress(
    val state: State = State.IDLE,
    val detail: String = "",
    val round: Long = 0,
    val rounds: Long = 0,
    val loss: Double = Double.NaN,
    val metric: Double = Double.NaN,
    val sentBytes: Long = 0,
)

/** How a device takes part. Times are in seconds. */
class Settings(
    /** An invitation, or the verdict of Play Integrity, as the sites ask. */
    val evidence: ByteArray? = null,
    /** The federation's roster, and the fingerprint of the first one. */
    val roster: ByteArray? = null,
    val fingerprint: String = "",
    /** After how long the device pauses by itself (0 = never). */
    val window: Long = 9 * 60,
    /** How long it waits for other members. */
    val wait: Long = 5 * 60,
    /** A multiaddress to listen on (empty = it only dials out). */
    val listen: String = "",
    /** The phone's IP addresses, which Android hides from libraries from version 11 on. */
    val addresses: List<String> = emptyList(),
    /** Replaces a key that is lost. The device has another ID then. */
    val newKey: Boolean = false,
)

/** A small graph in memory. Each node has [features] numbers, scaled as at all members, and one of [classes] or none. */
class Graph(val features: Int, val classes: Int) {
    internal val go = mobile.Graph(features.toLong(), classes.toLong())

    val nodes: Int get() = go.nodes().toInt()

    /** Adds a node and returns its number. [use] is `train`, `val`, `test` or `none` (null = six, two and two in ten). */
    fun add(name: String, values: FloatArray, label: Int? = null, use: String? = null): Int {
        val node = go.addNode(name)
        val row = ByteBuffer.allocate(4 * values.size).order(ByteOrder.LITTLE_ENDIAN)
        values.forEach { row.putFloat(it) }
        go.setFeatures(node, row.array())
        label?.let { go.setLabel(node, it.toLong()) }
        use?.let { go.setUse(node, it) }
        return node.toInt()
    }

    /** The number of a node, null if there is none of that name. */
    fun node(name: String): Int? = go.node(name).toInt().takeIf { it >= 0 }

    /** Connects two nodes, in both directions. */
    fun connect(a: String, b: String) = go.addEdge(go.node(a), go.node(b))
}

class Predictions internal constructor(private val go: mobile.Predictions) {
    val nodes: Int get() = go.nodes().toInt()

    fun classOf(node: Int): Int = go.classOf(node.toLong()).toInt()

    fun probability(node: Int, label: Int): Double = go.probability(node.toLong(), label.toLong())
}

/** One member of a federation. */
class Device private constructor(private val go: mobile.Device) {
    /** The ID that a plan lists. */
    val id: String get() = go.id()

    val state: State get() = State.of(go.state())

    /** Reports what the phone is doing. The plan's `phone_when` decides when that suffices. */
    fun allow(charging: Boolean, unmetered: Boolean, idle: Boolean) = go.allow(charging, unmetered, idle)

    /**
     * Trains until the model is final or the window is over, and returns how far it came: [State.DONE] or [State.PAUSED].
     * The next call goes on, also in another process, and may then leave out the graph of a phone that the plan lists.
     * A coroutine that is cancelled pauses the device within a second. [show] is called on a thread of the library.
     */
    suspend fun train(graph: Graph? = null, show: (Progress) -> Unit = {}): Progress = withContext(Dispatchers.IO) {
        graph?.let { go.setGraph(it.go) }
        val end = CompletableDeferred<Progress>()
        go.start(Watch(show, end))
        try {
            end.await()
        } catch (e: CancellationException) {
            go.pause()
            throw e
        }
    }

    /** Pauses within a second; [train] returns. */
    suspend fun pause() = withContext(Dispatchers.IO) { go.pause() }

    /** Ends the device for good. */
    suspend fun stop() = withContext(Dispatchers.IO) { go.stop() }

    /** The last model's predictions for the nodes of a graph, without any network. */
    suspend fun predict(graph: Graph) = withContext(Dispatchers.Default) { Predictions(go.predict(graph.go)) }

    /** The last run's predictions for the device's own nodes, with the rows of neighbours at other members. */
    suspend fun own() = withContext(Dispatchers.IO) { Predictions(go.own()) }

    companion object {
        /** Opens the device whose runs are in [directory], and makes it at the first time. Without a plan it only predicts. */
        suspend fun open(directory: File, plan: ByteArray?, store: Store, settings: Settings = Settings()): Device =
            withContext(Dispatchers.IO) {
                val c = Config(directory.path)
                plan?.let { c.setPlan(it) }
                settings.evidence?.let { c.setEvidence(it) }
                settings.roster?.let { c.setRoster(it, settings.fingerprint) }
                c.setWindow(settings.window)
                c.setWait(settings.wait)
                c.setListen(settings.listen)
                c.setNewKey(settings.newKey)
                val go = try {
                    mobile.Device(c, store)
                } catch (e: Exception) {
                    val text = e.message.orEmpty()
                    throw if (text.startsWith(Mobile.KeyLost)) KeyLostException(text) else e
                }
                if (settings.addresses.isNotEmpty()) {
                    go.setInterfaces(settings.addresses.joinToString(","))
                }
                Device(go)
            }
    }
}

/** Collects what the library reports, which calls one method at a time. */
private class Watch(private val show: (Progress) -> Unit, private val end: CompletableDeferred<Progress>) : Listener {
    private var now = Progress()
    private var kind = "run"
    private var fault = ""

    override fun onState(state: String, detail: String) {
        set(now.copy(state = State.of(state), detail = detail))
        when (now.state) {
            State.DONE, State.PAUSED, State.STOPPED -> end.complete(now)
            State.FAILED -> end.completeExceptionally(RunException(kind, fault))
            else -> {}
        }
    }

    override fun onRound(done: Long, total: Long, loss: Double, metric: Double) =
        set(now.copy(round = done, rounds = total, loss = loss, metric = metric))

    override fun onBytes(sent: Long) = set(now.copy(sentBytes = sent))

    override fun onError(kind: String, text: String) {
        this.kind = kind
        fault = text
    }

    /** An exception of the app ends the run, and comes out of train. */
    private fun set(next: Progress) {
        now = next
        try {
            show(next)
        } catch (e: Exception) {
            end.completeExceptionally(e)
            throw e
        }
    }
}
