package org.heddle.phones

import android.content.Context
import android.os.PowerManager
import androidx.work.Constraints
import androidx.work.CoroutineWorker
import androidx.work.ExistingPeriodicWorkPolicy
import androidx.work.NetworkType
import androidx.work.PeriodicWorkRequestBuilder
import androidx.work.WorkManager
import androidx.work.WorkerParameters
import androidx.work.workDataOf
import java.net.NetworkInterface
import java.util.concurrent.TimeUnit
import org.heddle.Device
import org.heddle.KeyLostException
import org.heddle.Progress
import org.heddle.RunException
import org.heddle.SealedStore
import org.heddle.Settings

/**
 * Trains for one window: WorkManager begins it while the constraints are met, and cancels it when one no longer is or after
 * ten minutes. The next window goes on from there.
 */
class TrainWorker(private val context: Context, parameters: WorkerParameters) : CoroutineWorker(context, parameters) {
    override suspend fun doWork(): Result {
        val device = openPhone(context)
        val power = context.getSystemService(PowerManager::class.java)
        // The constraints below make the first two true for as long as this worker runs.
        device.allow(charging = true, unmetered = true, idle = power?.isInteractive == false)
        val tables = Tables(context)
        return try {
            device.train(graph(tables.contacts(), tables.ties())) { setProgressAsync(it.toData()) }
            Result.success()
        } catch (e: RunException) {
            setProgress(workDataOf("fault" to e.message))
            Result.retry()
        } finally {
            device.stop()
        }
    }

    companion object {
        fun schedule(context: Context) {
            val atNight = Constraints.Builder()
                .setRequiresCharging(true)
                .setRequiredNetworkType(NetworkType.UNMETERED)
                .build()
            WorkManager.getInstance(context).enqueueUniquePeriodicWork("train", ExistingPeriodicWorkPolicy.KEEP,
                PeriodicWorkRequestBuilder<TrainWorker>(1, TimeUnit.HOURS).setConstraints(atNight).build())
        }
    }
}

private fun Progress.toData() =
    workDataOf("state" to state.name.lowercase(), "round" to round, "rounds" to rounds, "bytes" to sentBytes)

/**
 * The phone of this app, with the plan that the app was built with. A phone that no plan lists needs no key of before: after
 * a transfer it is another one. An app whose phones are listed shows the new ID to the administrators instead.
 */
suspend fun openPhone(context: Context): Device {
    suspend fun open(newKey: Boolean) = Device.open(
        directory = context.noBackupFilesDir.resolve("heddle"),
        plan = context.resources.openRawResource(R.raw.plan).use { it.readBytes() },
        store = SealedStore(context.noBackupFilesDir.resolve("keys")),
        settings = Settings(addresses = addresses(), newKey = newKey),
    )
    return try {
        open(newKey = false)
    } catch (e: KeyLostException) {
        open(newKey = true)
    }
}

private fun addresses() = NetworkInterface.getNetworkInterfaces().toList()
    .flatMap { it.inetAddresses.toList() }
    .filterNot { it.isLoopbackAddress || it.isLinkLocalAddress }
    .mapNotNull { it.hostAddress }
