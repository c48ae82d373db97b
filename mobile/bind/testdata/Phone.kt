// A phone in Kotlin, for the tests of the binding: what Phone.java does as a leaf, by org.heddle. It is cancelled once on its way.
import java.io.File
import java.util.Random
import javax.crypto.SecretKey
import javax.crypto.spec.SecretKeySpec
import kotlin.system.exitProcess
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import org.heddle.Device
import org.heddle.Graph
import org.heddle.KeyLostException
import org.heddle.Progress
import org.heddle.SealedStore
import org.heddle.Settings
import org.heddle.State

suspend fun main(args: Array<String>) {
    val (_, dir, plan, seed, nodes) = args
    phone(File(dir), File(plan).readBytes(), people(seed.toLong(), nodes.toInt()), args[5].toByteArray())
    println("end")
    exitProcess(0) // the library's threads would keep the machine alive
}

suspend fun phone(dir: File, plan: ByteArray, g: Graph, invitation: ByteArray) {
    suspend fun open(phone: Byte, newKey: Boolean = false) = Device.open(File(dir, "runs"), plan,
        SealedStore(File(dir, "keys"), key(phone)), Settings(evidence = invitation, wait = 60, newKey = newKey))
    val device = open(phone = 1)
    device.allow(charging = true, unmetered = true, idle = false)
    coroutineScope {
        val connecting = CompletableDeferred<Progress>()
        val training = launch { device.train(g) { if (it.state == State.CONNECTING) connecting.complete(it) } }
        connecting.await()
        training.cancelAndJoin()
    }
    check(device.state == State.PAUSED) { "a device whose coroutine is cancelled must be paused (got ${device.state})" }
    try {
        device.train(g) { error("the screen is gone") }
        error("what the app throws must come out of train")
    } catch (e: IllegalStateException) {
        check(e.message == "the screen is gone") { "$e" }
    }
    while (device.state != State.PAUSED) Thread.sleep(1)
    try {
        device.train(g)
        error("the library must report that the listener failed")
    } catch (e: Exception) {
        check("the screen is gone" in e.message.orEmpty()) { "$e" }
    }
    val end = device.train(g) { println("round ${it.round} of ${it.rounds}, ${it.sentBytes} bytes") }
    println("state ${end.state.name.lowercase()}")
    println("resident ?")
    check(end.state == State.DONE && end.round > 0 && end.sentBytes > 0) { "$end" }
    val all = device.predict(g)
    println("right ${(0 until all.nodes).count { all.classOf(it) == it % 2 && all.probability(it, it % 2) > 0.5 }} of ${all.nodes}")
    check(device.own().nodes == g.nodes)
    device.stop()
    check(open(phone = 1).id == device.id) { "the key must be kept" }
    try {
        open(phone = 2) // whose Keystore has not sealed the file
        error("a lost key must be an exception")
    } catch (e: KeyLostException) {
        println("lost ${e.message}")
    }
    val next = open(phone = 2, newKey = true)
    check(next.id != device.id && next.predict(g).nodes == all.nodes) { "another device has the model" }
}

fun key(phone: Byte): SecretKey = SecretKeySpec(ByteArray(32) { phone }, "AES")

/** Two groups of people who know their own. */
fun people(seed: Long, nodes: Int) = Graph(features = 4, classes = 2).apply {
    val random = Random(seed)
    for (i in 0 until nodes) {
        val group = i % 2
        val noise = random.nextFloat() - 0.5f
        add("person $i", floatArrayOf(1f - group, group.toFloat(), noise, group + 3 * noise), label = group)
        if (i > 1) connect("person $i", "person ${i - 2}")
    }
    check(node("person 1") == 1 && node("nobody") == null)
}
