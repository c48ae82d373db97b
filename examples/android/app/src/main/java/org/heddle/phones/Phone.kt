package org.heddle.phones

import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import mobile.Config
import mobile.Device
import mobile.Graph
import mobile.Listener
import mobile.Mobile
import mobile.Predictions
import mobile.Store

/** A row of the app's table: somebody whom the owner of the phone writes with. */
class Contact(
    val name: String,
    val sent: Int,
    val received: Int,
    val nights: Int, // messages between 22 and 6 o'clock
    val answersSoon: Boolean? // null: not known yet
)

/** Two contacts who are in one group. */
class Tie(val a: String, val b: String)

/** The classes, the same at all members. */
const val LATER = 0L
const val SOON = 1L

/** What the screen shows. */
class Progress(val state: String, val round: Long, val rounds: Long, val sentBytes: Long, val fault: String?)

/** This phone as a member of the federation. */
class Phone(directory: File, plan: ByteArray?, store: Store, private val show: (Progress) -> Unit) {
    private val device: Device

    init {
        val config = Config(directory.path)
        if (plan != null) {
            config.setPlan(plan)
        }
        device = Device(config, store)
    }

    /** The ID that the federation's plan lists. */
    val id: String get() = device.id()

    /** Trains until the model is final, the window is over or pause is called, and returns the last state. */
    fun train(contacts: List<Contact>, ties: List<Tie>): String {
        device.setGraph(graph(contacts, ties))
        val watch = Watch(show)
        device.start(watch)
        return watch.await()
    }

    /** Ends the work within a second. The next train goes on. */
    fun pause() = device.pause()

    fun allow(charging: Boolean, unmetered: Boolean, idle: Boolean) = device.allow(charging, unmetered, idle)

    /** Tells the addresses that Android hides from libraries from version 11 on. */
    fun setAddresses(all: List<String>) = device.setInterfaces(all.joinToString(","))

    /** The probability that each contact answers soon, by name. */
    fun predict(contacts: List<Contact>, ties: List<Tie>): Map<String, Double> {
        val g = graph(contacts, ties)
        val all: Predictions = device.predict(g)
        return contacts.associate { it.name to all.probability(g.node(it.name), SOON) }
    }
}

/** graph makes the graph of the rows. Counts are scaled as at all members: by their logarithm. */
fun graph(contacts: List<Contact>, ties: List<Tie>): Graph {
    val g = Graph(3, 2)
    for (c in contacts) {
        val node = g.addNode(c.name)
        g.setFeatures(node, floats(scaled(c.sent), scaled(c.received), scaled(c.nights)))
        if (c.answersSoon != null) {
            g.setLabel(node, if (c.answersSoon) SOON else LATER)
        }
    }
    for (t in ties) {
        g.addEdge(g.node(t.a), g.node(t.b))
    }
    return g
}

private fun scaled(count: Int) = Math.log1p(count.toDouble()).toFloat()

private fun floats(vararg values: Float): ByteArray {
    val b = ByteBuffer.allocate(4 * values.size).order(ByteOrder.LITTLE_ENDIAN)
    values.forEach { b.putFloat(it) }
    return b.array()
}

/** Watch passes on what the device tells, and waits for its end. */
private class Watch(private val show: (Progress) -> Unit) : Listener {
    private val over = java.util.concurrent.CountDownLatch(1)
    @Volatile private var now = Progress(Mobile.Idle, 0, 0, 0, null)

    fun await(): String {
        over.await()
        return now.state
    }

    override fun onState(state: String, detail: String) {
        set(Progress(state, now.round, now.rounds, now.sentBytes, now.fault))
        if (state == Mobile.Done || state == Mobile.Paused || state == Mobile.Failed || state == Mobile.Stopped) {
            over.countDown()
        }
    }

    override fun onRound(done: Long, total: Long, loss: Double, metric: Double) =
        set(Progress(now.state, done, total, now.sentBytes, now.fault))

    override fun onBytes(sent: Long) = set(Progress(now.state, now.round, now.rounds, sent, now.fault))

    override fun onError(kind: String, text: String) = set(Progress(now.state, now.round, now.rounds, now.sentBytes, text))

    private fun set(p: Progress) {
        now = p
        show(p)
    }
}
