import { printableAscii } from './policy-name.ts'

// Serialisers of RFC 9651 §4.1. They return undefined if serialisation fails by the RFC. So no byte
// outside printable ASCII, and no line break, can reach a header.

/** An sf-string; `undefined` if the text is empty or not printable ASCII. */
export function serialiseString(text: string): string | undefined {
  return printableAscii.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : undefined
}

/** Every runtime with `fetch` has it. */
declare function btoa(text: string): string

/** A byte sequence: padded base64 (RFC 4648 §4) between colons. */
export function serialiseBytes(bytes: Uint8Array): string {
  return `:${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}:`
}
