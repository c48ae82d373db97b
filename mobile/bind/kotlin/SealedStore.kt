package org.heddle

import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.io.File
import java.io.FileOutputStream
import java.security.GeneralSecurityException
import java.security.KeyStore
import javax.crypto.AEADBadTagException
import javax.crypto.Cipher
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec

/** Keeps values in files that a key of the Keystore encrypts (AES-256-GCM). No backup may copy the directory. */
class SealedStore(private val directory: File, private val key: SecretKey = keystoreKey()) : Store {
    /** A file that another phone's Keystore has sealed can never be read again. */
    override fun get(name: String): ByteArray? {
        val file = File(directory, name)
        if (!file.exists()) {
            return null
        }
        val sealed = file.readBytes()
        if (sealed.size < NONCE + TAG) {
            throw GeneralSecurityException("$file must have at least ${NONCE + TAG} bytes (got ${sealed.size})")
        }
        val cipher = Cipher.getInstance(AES)
        cipher.init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(8 * TAG, sealed, 0, NONCE))
        cipher.updateAAD(name.toByteArray())
        return try {
            cipher.doFinal(sealed, NONCE, sealed.size - NONCE)
        } catch (e: AEADBadTagException) {
            null
        }
    }

    override fun put(name: String, value: ByteArray) {
        val cipher = Cipher.getInstance(AES)
        cipher.init(Cipher.ENCRYPT_MODE, key) // the Keystore makes the nonce
        cipher.updateAAD(name.toByteArray())
        val sealed = cipher.iv + cipher.doFinal(value)
        directory.mkdirs()
        val next = File(directory, "$name.new")
        FileOutputStream(next).use {
            it.write(sealed)
            it.fd.sync()
        }
        check(next.renameTo(File(directory, name))) { "$name cannot be written" }
    }

    private companion object {
        const val AES = "AES/GCM/NoPadding"
        const val NONCE = 12 // bytes
        const val TAG = 16
    }
}

/** The key that seals the device's identity. It is made once, inside the Keystore, and never leaves it. */
fun keystoreKey(name: String = "heddle"): SecretKey {
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
