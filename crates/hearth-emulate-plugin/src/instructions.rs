//! Instructions that mean something to the plugin, by their bytes.

/// `nopl 0x5c4ed001(%rax)`: a program of the guest calls the plugin. Does nothing on a machine.
const CALL: [u8; 7] = [0x0f, 0x1f, 0x80, 0x01, 0xd0, 0x4e, 0x5c];

/// The longest instruction.
pub(crate) const LONGEST: usize = 15;

/// Whether an instruction calls the plugin.
pub(crate) fn is_call(code: &[u8]) -> bool {
    code == CALL
}

/// Whether an instruction says that its program waits in a loop.
pub(crate) fn is_pause(code: &[u8]) -> bool {
    matches!(code, [0xf3, 0x90])
}

/// Whether an instruction may change which physical page an address means for its CPU: a write of a control
/// register, `invlpg` or `invpcid`. The guest's kernel executes one of them on each CPU that may have used what
/// it changes, before it relies on the change.
pub(crate) fn may_change_translations(code: &[u8]) -> bool {
    let is_prefix = |byte: &&u8| {
        matches!(byte, 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65)
    };
    let after_prefixes = &code[code.iter().take_while(is_prefix).count()..];
    let opcode = match after_prefixes {
        [0x40..=0x4f, rest @ ..] => rest,
        _ => after_prefixes,
    };
    match opcode {
        [0x0f, 0x22, ..] | [0x0f, 0x38, 0x82, ..] => true,
        [0x0f, 0x01, operand, ..] => operand >> 6 != 3 && operand >> 3 & 7 == 7,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_nop_only() {
        assert!(is_call(&[0x0f, 0x1f, 0x80, 0x01, 0xd0, 0x4e, 0x5c]));
        assert!(!is_call(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), "a nop that compilers use");
    }

    #[test]
    fn a_pause_is_not_a_nop() {
        assert!(is_pause(&[0xf3, 0x90]) && !is_pause(&[0x90]));
    }

    #[test]
    fn changes_of_translations_are_recognised() {
        let changing: [&[u8]; 6] = [
            &[0x0f, 0x22, 0xdf],                   // mov %rdi,%cr3
            &[0x41, 0x0f, 0x22, 0xdc],             // mov %r12,%cr3
            &[0x0f, 0x22, 0xe0],                   // mov %rax,%cr4
            &[0x0f, 0x01, 0x3f],                   // invlpg (%rdi)
            &[0x41, 0x0f, 0x01, 0x3c, 0x24],       // invlpg (%r12)
            &[0x66, 0x0f, 0x38, 0x82, 0x04, 0x24], // invpcid (%rsp),%rax
        ];
        assert!(changing.into_iter().all(may_change_translations));
        let others: [&[u8]; 4] = [
            &[0x0f, 0x01, 0xf8],       // swapgs
            &[0x0f, 0x20, 0xd8],       // mov %cr3,%rax
            &[0x0f, 0x01, 0x10],       // lgdt (%rax)
            &[0x48, 0x8b, 0x04, 0x24], // mov (%rsp),%rax
        ];
        assert!(!others.into_iter().any(may_change_translations));
    }
}
