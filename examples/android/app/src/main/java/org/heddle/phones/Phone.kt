package org.heddle.phones

import kotlin.math.ln1p
import org.heddle.Device
import org.heddle.Graph

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
const val LATER = 0
const val SOON = 1

/** Makes the graph of the rows. Counts are scaled as at all members: by their logarithm. */
fun graph(contacts: List<Contact>, ties: List<Tie>) = Graph(features = 3, classes = 2).apply {
    for (c in contacts) {
        val row = floatArrayOf(scaled(c.sent), scaled(c.received), scaled(c.nights))
        add(c.name, row, label = c.answersSoon?.let { if (it) SOON else LATER })
    }
    ties.forEach { connect(it.a, it.b) }
}

private fun scaled(count: Int) = ln1p(count.toFloat())

/** The probability that each contact answers soon, by name. */
suspend fun Device.answersSoon(contacts: List<Contact>, ties: List<Tie>): Map<String, Double> {
    val all = predict(graph(contacts, ties))
    return contacts.withIndex().associate { (node, c) -> c.name to all.probability(node, SOON) }
}
