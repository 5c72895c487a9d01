//! Writing protobuf messages, field by field.

/// A message that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// The message as it is sent.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// How many bytes there are so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap_or(0));
    }

    fn tag(&mut self, number: u32, wire_type: u64) {
        self.varint(u64::from(number) << 3 | wire_type);
    }

    /// A whole number; negative ones are written as 64 bits.
    pub fn number(&mut self, number: u32, value: i64) {
        self.tag(number, 0);
        self.varint(value.cast_unsigned());
    }

    /// A number with a fraction.
    pub fn double(&mut self, number: u32, value: f64) {
        self.tag(number, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Bytes, a text, or a message that is written already.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, 2);
        self.varint(u64::try_from(value.len()).unwrap_or(u64::MAX));
        self.0.extend_from_slice(value);
    }

    /// A text.
    pub fn text(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    /// A message within this one.
    pub fn message(&mut self, number: u32, inner: &Message) {
        self.bytes(number, &inner.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_format_says() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.number(16, -1);
        message.double(3, 1.0);
        let mut inner = Message::default();
        inner.number(1, 0);
        message.message(4, &inner);
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g'],
            &[0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x19, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            &[0x22, 0x02, 0x08, 0x00],
        ];
        assert_eq!(message.into_bytes(), expected.concat());
    }
}
