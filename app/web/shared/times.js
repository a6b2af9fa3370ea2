"use strict";
// Shows times in the reader's time zone. Without this they stay in UTC, as the page says.
const inReadersZone = (part) => {
  for (const time of part.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title ||= `${time.textContent} UTC`;
    time.textContent = moment.toLocaleString("sv-SE"); // 2026-11-23 18:05:00
  }
  for (const zone of part.querySelectorAll(".zone")) {
    zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "your time zone";
  }
};
inReadersZone(document);
