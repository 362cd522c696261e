/** What an iterator gives, as it is asked for: not every engine has `ReadableStream.from`. */
export const readable = (iterator) =>
  new ReadableStream({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
