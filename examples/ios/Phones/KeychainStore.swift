// Not compiled: it needs Xcode.
import Foundation
import Mobile
import Security

/// Keeps values in the Keychain of this device: readable after the first unlock, and in no backup.
final class KeychainStore: NSObject, MobileStoreProtocol {
    private func query(_ key: String?) -> [CFString: Any] {
        [kSecClass: kSecClassGenericPassword, kSecAttrService: "heddle", kSecAttrAccount: key ?? ""]
    }

    func get(_ key: String?) throws -> Data {
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query(key).merging([kSecReturnData: true]) { $1 } as CFDictionary, &found)
        switch status {
        case errSecSuccess: return found as? Data ?? Data()
        case errSecItemNotFound: return Data() // nothing is kept
        default: throw NSError(domain: NSOSStatusErrorDomain, code: Int(status))
        }
    }

    func put(_ key: String?, value: Data?) throws {
        SecItemDelete(query(key) as CFDictionary)
        let item = query(key).merging([kSecValueData: value ?? Data(),
                                       kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly]) { $1 }
        let status = SecItemAdd(item as CFDictionary, nil)
        if status != errSecSuccess {
            throw NSError(domain: NSOSStatusErrorDomain, code: Int(status))
        }
    }
}
