// Not compiled: it needs Android's SDK.
package org.heddle.phones

import android.content.Context
import android.os.PowerManager
import androidx.work.Constraints
import androidx.work.ExistingPeriodicWorkPolicy
import androidx.work.NetworkType
import androidx.work.PeriodicWorkRequestBuilder
import androidx.work.WorkManager
import androidx.work.Worker
import androidx.work.WorkerParameters
import java.net.NetworkInterface
import java.util.concurrent.TimeUnit
import mobile.Mobile

/**
 * Trains for one window: WorkManager begins it where the constraints hold, ends it when one no longer does, and after ten
 * minutes in any case. The next window goes on where this one ended.
 */
class TrainWorker(private val context: Context, parameters: WorkerParameters) : Worker(context, parameters) {
    private lateinit var phone: Phone

    override fun doWork(): Result {
        val tables = Tables(context)
        phone = openPhone(context) { setProgressAsync(it.toData()) }
        phone.setAddresses(NetworkInterface.getNetworkInterfaces().toList()
            .flatMap { it.inetAddresses.toList() }
            .filterNot { it.isLoopbackAddress || it.isLinkLocalAddress }
            .mapNotNull { it.hostAddress })
        val power = context.getSystemService(PowerManager::class.java)
        // The constraints below are what makes the first two true for as long as this worker runs.
        phone.allow(true, true, !power.isInteractive)
        return when (phone.train(tables.contacts(), tables.ties())) {
            Mobile.Done, Mobile.Paused -> Result.success()
            else -> Result.retry()
        }
    }

    /** The system wants the phone back. */
    override fun onStopped() {
        if (::phone.isInitialized) {
            phone.pause()
        }
    }

    companion object {
        fun schedule(context: Context) {
            val when_ = Constraints.Builder()
                .setRequiresCharging(true)
                .setRequiredNetworkType(NetworkType.UNMETERED)
                .build()
            WorkManager.getInstance(context).enqueueUniquePeriodicWork("train", ExistingPeriodicWorkPolicy.KEEP,
                PeriodicWorkRequestBuilder<TrainWorker>(1, TimeUnit.HOURS).setConstraints(when_).build())
        }
    }
}

/** The phone of this app, with the plan that the app was built with. */
fun openPhone(context: Context, show: (Progress) -> Unit) = Phone(
    context.filesDir.resolve("heddle"),
    context.resources.openRawResource(R.raw.plan).use { it.readBytes() },
    SealedStore(context.filesDir.resolve("keys"), keystoreKey()),
    show)
