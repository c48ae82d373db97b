// Not compiled: it needs Android's SDK.
package org.heddle.phones

import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.security.KeyStore
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey

/** The key that seals the device's identity. It is made once, inside the Keystore, and never leaves it. */
fun keystoreKey(): SecretKey {
    val name = "heddle"
    val store = KeyStore.getInstance("AndroidKeyStore").apply { load(null) }
    (store.getKey(name, null) as SecretKey?)?.let { return it }
    val spec = KeyGenParameterSpec.Builder(name, KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT)
        .setKeySize(256)
        .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
        .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
        .build()
    return KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, "AndroidKeyStore").run {
        init(spec)
        generateKey()
    }
}
