// Not built: it needs Android's SDK. mobile/bind compiles the sources.
plugins {
    id("com.android.application") version "8.11.0"
    id("org.jetbrains.kotlin.android") version "2.2.21"
    id("org.jetbrains.kotlin.plugin.compose") version "2.2.21"
}

repositories {
    maven("libs/maven") // mobile/bind/android.sh made it
    google()
    mavenCentral()
}

android {
    namespace = "org.heddle.phones"
    compileSdk = 35
    defaultConfig {
        applicationId = "org.heddle.phones"
        minSdk = 28
        targetSdk = 35
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
    kotlinOptions { jvmTarget = "17" }
}

dependencies {
    implementation("io.github.heddle-gnn:heddle:0.1.0")
    implementation("androidx.work:work-runtime-ktx:2.10.1")
    implementation("androidx.activity:activity-compose:1.10.1")
    implementation(platform("androidx.compose:compose-bom:2025.06.00"))
    implementation("androidx.compose.material3:material3")
}
