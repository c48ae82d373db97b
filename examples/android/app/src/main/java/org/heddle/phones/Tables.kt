package org.heddle.phones

import android.content.Context
import android.database.Cursor
import android.database.sqlite.SQLiteDatabase

/** The app's own tables: who the owner writes with, and who is in one group with whom. */
class Tables(context: Context) {
    private val db: SQLiteDatabase = context.openOrCreateDatabase("messages.db", Context.MODE_PRIVATE, null).apply {
        execSQL("CREATE TABLE IF NOT EXISTS contact (name TEXT PRIMARY KEY, sent INT, received INT, nights INT, soon INT)")
        execSQL("CREATE TABLE IF NOT EXISTS tie (a TEXT, b TEXT)")
    }

    fun contacts() = rows("SELECT name, sent, received, nights, soon FROM contact ORDER BY name") {
        Contact(it.getString(0), it.getInt(1), it.getInt(2), it.getInt(3), if (it.isNull(4)) null else it.getInt(4) != 0)
    }

    fun ties() = rows("SELECT a, b FROM tie WHERE a IN (SELECT name FROM contact) AND b IN (SELECT name FROM contact)") {
        Tie(it.getString(0), it.getString(1))
    }

    private fun <T> rows(query: String, row: (Cursor) -> T): List<T> =
        db.rawQuery(query, null).use { c -> generateSequence { if (c.moveToNext()) row(c) else null }.toList() }
}
