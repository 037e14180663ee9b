/** The phrases of RFC 9110 §15 from 400 and from 500 on: a guard also runs without Node. */
const phrases = [
  'Bad Request,Unauthorized,Payment Required,Forbidden,Not Found,Method Not Allowed,' +
    'Not Acceptable,Proxy Authentication Required,Request Timeout,Conflict,Gone,' +
    'Length Required,Precondition Failed,Payload Too Large,URI Too Long,Unsupported Media Type,' +
    "Range Not Satisfiable,Expectation Failed,I'm a Teapot,,,Misdirected Request," +
    'Unprocessable Entity,Locked,Failed Dependency,Too Early,Upgrade Required,,' +
    'Precondition Required,Too Many Requests,,Request Header Fields Too Large,,,,,,,,,,,,,,,,,,' +
    ',,Unavailable For Legal Reasons',
  'Internal Server Error,Not Implemented,Bad Gateway,Service Unavailable,Gateway Timeout,' +
    'HTTP Version Not Supported,Variant Also Negotiates,Insufficient Storage,Loop Detected,' +
    'Bandwidth Limit Exceeded,Not Extended,Network Authentication Required',
].map((list) => list.split(','))

/** The phrase of a status from 400 on; `undefined` for one that has none. */
export function reasonPhrase(status: number): string | undefined {
  return phrases[Math.floor(status / 100) - 4]?.[status % 100] || undefined
}
