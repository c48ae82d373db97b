package org.heddle.phones

import android.os.Bundle
import androidx.activity.ComponentActivity
import androidx.activity.compose.setContent
import androidx.compose.foundation.layout.Column
import androidx.compose.foundation.layout.padding
import androidx.compose.material3.Button
import androidx.compose.material3.LinearProgressIndicator
import androidx.compose.material3.MaterialTheme
import androidx.compose.material3.Text
import androidx.compose.runtime.Composable
import androidx.compose.runtime.collectAsState
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.remember
import androidx.compose.runtime.rememberCoroutineScope
import androidx.compose.runtime.setValue
import androidx.compose.ui.Modifier
import androidx.compose.ui.platform.LocalContext
import androidx.compose.ui.unit.dp
import androidx.work.WorkManager
import kotlinx.coroutines.launch

class MainActivity : ComponentActivity() {
    override fun onCreate(saved: Bundle?) {
        super.onCreate(saved)
        TrainWorker.schedule(this)
        setContent { MaterialTheme { Screen() } }
    }
}

@Composable
fun Screen() {
    val context = LocalContext.current
    val scope = rememberCoroutineScope()
    val work by WorkManager.getInstance(context).getWorkInfosForUniqueWorkFlow("train").collectAsState(emptyList())
    var likely by remember { mutableStateOf(emptyMap<String, Double>()) }
    var fault by remember { mutableStateOf<String?>(null) }
    val progress = work.firstOrNull()?.progress
    val round = progress?.getLong("round", 0) ?: 0
    val rounds = progress?.getLong("rounds", 0) ?: 0
    Column(Modifier.padding(16.dp)) {
        Text(progress?.getString("state") ?: "waiting for a charger and an unmetered network")
        if (rounds > 0) {
            LinearProgressIndicator(progress = { round.toFloat() / rounds })
            Text("round $round of $rounds, ${(progress?.getLong("bytes", 0) ?: 0) / 1000} kB sent")
        }
        progress?.getString("fault")?.let { Text(it, color = MaterialTheme.colorScheme.error) }
        fault?.let { Text(it, color = MaterialTheme.colorScheme.error) }
        Button(onClick = {
            scope.launch {
                try {
                    val tables = Tables(context)
                    likely = openPhone(context).answersSoon(tables.contacts(), tables.ties())
                } catch (e: Exception) {
                    fault = e.message // such as that there is no model yet
                }
            }
        }) { Text("Who answers soon?") }
        likely.entries.sortedByDescending { it.value }.take(10).forEach { Text("${it.key}: ${(100 * it.value).toInt()} %") }
    }
}
