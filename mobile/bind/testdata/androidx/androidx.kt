// Signatures of what examples/android uses of androidx.work 2.10.1, androidx.activity 1.10.1 and Compose for Android, and of the
// class that Android's build makes of res/. Google's Maven repository, which has the real ones, cannot be reached from CI:
// kotlin.sh compiles the example against these. They are written after the documentation, and do nothing.
@file:Suppress("UNUSED_PARAMETER", "unused")

package androidx.work

import android.content.Context
import java.util.concurrent.Future
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.flow.Flow

class Data private constructor() {
    fun getString(key: String): String? = TODO()
    fun getLong(key: String, defaultValue: Long): Long = TODO()
}

fun workDataOf(vararg pairs: Pair<String, Any?>): Data = TODO()

class WorkerParameters private constructor()

abstract class ListenableWorker(appContext: Context, workerParams: WorkerParameters) {
    abstract class Result private constructor() {
        companion object {
            @JvmStatic fun success(): Result = TODO()
            @JvmStatic fun retry(): Result = TODO()
        }
    }

    fun setProgressAsync(data: Data): Future<Void> = TODO()
}

abstract class CoroutineWorker(appContext: Context, params: WorkerParameters) : ListenableWorker(appContext, params) {
    abstract suspend fun doWork(): Result
    suspend fun setProgress(data: Data): Unit = TODO()
}

enum class NetworkType { NOT_REQUIRED, CONNECTED, UNMETERED, NOT_ROAMING, METERED }

enum class ExistingPeriodicWorkPolicy { KEEP, UPDATE, CANCEL_AND_REENQUEUE }

class Constraints private constructor() {
    class Builder {
        fun setRequiresCharging(requiresCharging: Boolean): Builder = TODO()
        fun setRequiredNetworkType(networkType: NetworkType): Builder = TODO()
        fun build(): Constraints = TODO()
    }
}

class PeriodicWorkRequest private constructor() {
    class Builder(workerClass: Class<out ListenableWorker>, repeatInterval: Long, unit: TimeUnit) {
        fun setConstraints(constraints: Constraints): Builder = TODO()
        fun build(): PeriodicWorkRequest = TODO()
    }
}

inline fun <reified W : ListenableWorker> PeriodicWorkRequestBuilder(repeatInterval: Long, unit: TimeUnit) =
    PeriodicWorkRequest.Builder(W::class.java, repeatInterval, unit)

class WorkInfo private constructor() {
    val progress: Data get() = TODO()
}

interface Operation

abstract class WorkManager {
    abstract fun enqueueUniquePeriodicWork(name: String, policy: ExistingPeriodicWorkPolicy, request: PeriodicWorkRequest): Operation
    abstract fun getWorkInfosForUniqueWorkFlow(name: String): Flow<List<WorkInfo>>

    companion object {
        @JvmStatic fun getInstance(context: Context): WorkManager = TODO()
    }
}
